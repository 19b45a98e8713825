import assert from "node:assert/strict";
import { test } from "node:test";
import { filteredProject, now, OLD_PATTERNS } from "../../../src/pages/old_links";
import { alsoAsked, MODELS_VIEW, modelsView } from "../../../src/pages/models/data";
import { pageRoutes } from "../../../src/pages/routes";
import { logView } from "../../../src/state/address";
import { listView } from "../../../src/state/list_address";
import { match } from "../../../src/state/router";

const opened = (address: string): string => {
    const [path = "", query = ""] = address.split("?"), t = now(path, new URLSearchParams(query));
    if (!t) return pageRoutes.some((r) => match(r.pattern, path)) ? "a page of today" : "nothing";
    return "to" in t ? t.to : "sentence" in t ? "a sentence" : `trial of ${t.experiment}: ${t.part}`;
};

test("every address of Determined's page opens what it meant", () => {
    const rows: [string, string][] = [
        ["/det/dashboard", "/det/experiments"], ["/det/login", "/det/experiments"], ["/det/login?redirect=/det/trials/7", "/det/trials/7"],
        ["/det/login?redirect=https://evil.example/", "/det/experiments"], ["/det/login?redirect=//evil.example/det/", "/det/experiments"], ["/det/logout", "a page of today"],
        ["/det/reload?path=/det/experiments/7", "/det/experiments/7"], ["/det/workspaces", "a page of today"], ["/det/workspaces/3", "a page of today"],
        ["/det/workspaces/3/members", "a page of today"], ["/det/projects", "/det/projects/1"], ["/det/projects/1", "a page of today"], ["/det/projects/1/experiments", "a page of today"],
        ["/det/experiments/7", "a page of today"], ["/det/experiments/7/", "a page of today"], ["/det/experiments/7/visualization", "/det/experiments/7"], ["/det/experiments/7/overview", "/det/experiments/7"],
        ["/det/experiments/7/trials", "/det/experiments/7"], ["/det/experiments/7/metrics", "trial of 7: metrics"], ["/det/experiments/7/workloads", "trial of 7: metrics"],
        ["/det/experiments/7/code?filePath=a%2Fb.c", "/det/experiments/7?tab=code&file=a%2Fb.c"], ["/det/experiments/7/code", "/det/experiments/7?tab=code"], ["/det/experiments/7/notes", "/det/experiments/7?tab=notes"], ["/det/experiments/7/checkpoints", "/det/experiments/7?tab=checkpoints"],
        ["/det/experiments/7/hyperparameters", "trial of 7: hyperparameters"], ["/det/experiments/7/profiler", "trial of 7: profile"], ["/det/experiments/7/logs?tail", "trial of 7: logs"],
        ["/det/experiments/7/visualization/learning-curve", "/det/experiments/7"], ["/det/experiments/7/visualization/hp-parallel-coordinates", "/det/experiments/7"],
        ["/det/experiments/7/visualization/hp-scatter-plots", "/det/experiments/7?tab=scatter"], ["/det/experiments/7/visualization/hp-heat-map", "/det/experiments/7?tab=heat"],
        ["/det/experiments/7/constructor", "/det/experiments/7"], ["/det/experiments/7/trials/9", "/det/trials/9"], ["/det/experiments/7/trials/9/overview", "/det/trials/9"],
        ["/det/experiments/7/trials/9/hyperparameters", "/det/trials/9?at=hyperparameters"], ["/det/experiments/7/trials/9/profiler", "/det/trials/9?at=profile"],
        ["/det/experiments/7/trials/9/logs?rankId=2", "/det/trials/9/logs?rankId=2"], ["/det/trials/9", "a page of today"], ["/det/trials/9/logs", "a page of today"],
        ["/det/trials/9/profiler", "/det/trials/9?at=profile"], ["/det/trials/9/workloads", "/det/trials/9?at=metrics"], ["/det/trials/9/metrics", "/det/trials/9?at=metrics"],
        ["/det/command/u/logs?id=x", "a sentence"], ["/det/jupyter-lab/u/logs", "a sentence"], ["/det/shell/u/logs", "a sentence"], ["/det/tensor-board/u/logs", "a sentence"],
        ["/det/tasks", "/det/clusters"], ["/det/interactive/a/b/c/d/e", "a sentence"], ["/det/wait/tensor-board/u?serviceAddr=//evil", "a sentence"],
        ["/det/models", "a page of today"], ["/det/models/my%20model", "a page of today"], ["/det/models/a/versions/1", "a page of today"], ["/det/models/a/versions/1/notes", "a page of today"],
        ["/det/clusters", "a page of today"], ["/det/clusters/historical-usage", "a page of today"], ["/det/clusters/overview", "/det/clusters"], ["/det/clusters/logs", "/det/master?tab=log"], ["/det/cluster", "/det/clusters"],
        ["/det/cluster/logs", "/det/master?tab=log"], ["/det/cluster/historical-usage?groupBy=month", "/det/clusters/historical-usage?groupBy=month"], ["/det/jobs", "/det/clusters"],
        ["/det/logs", "/det/master?tab=log"], ["/det/resourcepool/default", "/det/clusters?pool=default"], ["/det/resourcepool/a%26b%2Fc/queued", "/det/clusters?pool=a%26b%2Fc"],
        ["/det/admin", "/det/users"], ["/det/admin/user-management", "/det/users"], ["/det/admin/group-management", "/det/users?tab=groups"], ["/det/webhooks", "a page of today"],
        ["/det/experiment-compare?id=1&id=2&id=x", "/det/compare?e=1,2"], ["/det/users", "a page of today"], ["/det/nowhere", "nothing"],
    ];
    for (const [address, to] of rows) {
        const path = address.split("?")[0]!, isOfToday = pageRoutes.find((r) => match(r.pattern, path))?.title !== "Moved";
        assert.equal(isOfToday && to === "a page of today" ? to : opened(address), to, address);
    }
    assert.ok(OLD_PATTERNS.every((p) => pageRoutes.some((r) => r.pattern === p)));
});

test("an old link to models keeps what it was filtered and sorted by", () => {
    const v = modelsView(new URLSearchParams("name=a%26b&description=d&tags=x&tags=y,z&users=2&users=no&workspace=3&archived=true&sortKey=SORT_BY_NAME&sortDesc=true&tableLimit=10"));
    assert.deepEqual(v, { search: "a&b", description: "d", labels: ["x", "y,z"], owners: [2], workspaces: [3], archived: true, sort: "name", isDown: true });
    assert.deepEqual(alsoAsked(v), ["described as d", "labelled x", "labelled y,z", "of user 2", "in workspace 3"]);
    assert.deepEqual([modelsView(new URLSearchParams("sortKey=constructor&sort=toString&archived=no")), alsoAsked(MODELS_VIEW)], [MODELS_VIEW, []]);
    assert.deepEqual([MODELS_VIEW.sort, MODELS_VIEW.isDown, modelsView(new URLSearchParams("sort=name")).isDown], ["changed", true, false]);
});

test("what an old link was filtered by is kept", () => {
    const v = logView("tail&level=LOG_LEVEL_ERROR&level=LOG_LEVEL_WARNING&rankId=0&rankId=3&searchText=a%26b&agentId=host-1&containerId=c", "");
    assert.deepEqual([v.levels, v.ranks, v.search, v.hosts], [["WARNING", "ERROR"], [0, 3], "a&b", ["host-1"]]);
    assert.deepEqual([logView("level=ERROR,INFO&rank=1,2", "").levels, logView("level=ERROR,INFO&rank=1,2", "").ranks, logView("level=ERROR", "").levels], [["INFO", "ERROR"], [1, 2], ["ERROR"]]);
    assert.equal(filteredProject("7", new URLSearchParams("tableLimit=10&sortKey=SORT_BY_ID")), null);
    const list = listView(filteredProject("7", new URLSearchParams("state=STATE_ERROR&state=STATE_COMPLETED&search=lr&user=2&user=x&label=a&label=b&archived=true"))!.split("?")[1]!);
    assert.deepEqual([list.states, list.search, list.owners, list.labels, list.archived, list.tree], [["completed", "failed"], "lr", [2], ["a", "b"], "only", { how: "and", children: [{ column: "projectId", op: "=", value: 7 }] }]);
});
