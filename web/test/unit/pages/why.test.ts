import assert from "node:assert/strict";
import { test } from "node:test";
import { verbs } from "../../../src/pages/experiment/actions";
import { compare, placeOf, pressed, sorted } from "../../../src/ui/table/sort";
import { hasMore, remedy, startText, takes } from "../../../src/pages/cluster/why";

test("only commands that the page knows become buttons", () => {
    for (const known of ["det experiment pause 7", "det experiment activate 12", "det agent enable agent-0", "det experiment set max-slots 3 2",
        "det experiment set priority 3 10", "det trial kill 4", "det job update 3.ab --resource-pool p"]) assert.notEqual(remedy(known), null, known);
    for (const other of ["", "det", "rm -rf /", "det experiment delete 7", "det experiment pause 7; det experiment kill 8", "det experiment pause ../8",
        "det experiment set name 3 x", "det experiment set max-slots 3 x", "det experiment set constructor 3 1", "det job update j --resource-pool", "det job update j --resource-pool p q", "det job update j --priority 3"])
        assert.equal(remedy(other), null, other);
});

test("each button sends what its command says", async () => {
    const sent: unknown[] = [];
    globalThis.fetch = async (input, init) => {
        sent.push([init?.method, String(input), ...(init?.body ? [JSON.parse(String(init.body))] : [])]);
        return Response.json({});
    };
    const sends = async (command: string, ...what: unknown[]) => {
        await remedy(command)!();
        assert.deepEqual(sent.splice(0), [what], command);
    };
    for (const verb of ["activate", "pause", "cancel", "kill"]) await sends(`det experiment ${verb} 7`, "POST", `/api/v1/experiments/7/${verb}`);
    await sends("det trial kill 4", "POST", "/api/v1/trials/4/kill");
    await sends("det agent enable a/b", "POST", "/api/v1/agents/a%2Fb/enable");
    await sends("det experiment set max-slots 3 2", "PATCH", "/api/v1/experiments/3", { id: 3, resources: { maxSlots: 2 } });
    await sends("det experiment set priority 3 10", "PATCH", "/api/v1/experiments/3", { id: 3, resources: { priority: 10 } });
    await sends("det experiment set weight 3 0.5", "PATCH", "/api/v1/experiments/3", { id: 3, resources: { weight: 0.5 } });
    await sends("det job update 3.ab --resource-pool p", "POST", "/api/v1/job-queues", { updates: [{ jobId: "3.ab", resourcePool: "p" }] });
});

test("what a remedy takes, and of whose", () => {
    const of = { ownerId: 7, workspaceId: 2 }, own = { experiment: 3, of }, blockers = [{ experimentId: 8, ownerId: 9 }, { experimentId: 3, ownerId: 7 }];
    const all = (c: string) => takes(c, own, blockers);
    assert.deepEqual(all("det agent enable a"), { right: "cluster", of: {} });
    assert.deepEqual([all("det experiment activate 3"), all("det experiment pause 3"), all("det job update 3.ab --resource-pool p")], Array(3).fill({ right: "operate", of }));
    assert.deepEqual(all("det experiment set priority 3 10"), { right: "edit", of });
    assert.deepEqual([all("det experiment pause 8"), all("det experiment pause 10")], [{ right: "operate", of: { ownerId: 9 } }, { right: "operate", of: {} }]);
});

test("when it is expected to start, and by what; 0 seconds are a time too", () => {
    assert.equal(startText({ seconds: 95.4, basis: "the end of trial 4" }), "Expected to start in about 1 min 35 s (the end of trial 4).");
    assert.equal(startText({ seconds: 0, basis: "a free slot" }), "Expected to start in about 0 s (a free slot).");
    assert.equal(startText({ seconds: null, basis: "trial 4 tells no progress" }), "When it starts cannot be told: trial 4 tells no progress.");
    assert.equal(startText(null), "");
});

test("more is offered only where there is more than the sentence", () => {
    const none = { expectedStart: null, blockers: [], suggestions: [] };
    assert.equal(hasMore(none), false);
    assert.equal(hasMore({ ...none, expectedStart: { seconds: 0, basis: "a free slot" } }), true);
    assert.equal(hasMore({ ...none, blockers: [{}] }), true);
    assert.equal(hasMore({ ...none, suggestions: [{ text: "wait", command: "" }] }), true);
});

test("what can be done in each state", () => {
    const of = (state: string, archived = false) => verbs({ state: `STATE_${state}` as "STATE_ACTIVE", archived, unmanaged: false });
    for (const s of ["ACTIVE", "RUNNING", "QUEUED"]) assert.deepEqual(of(s), ["pause", "cancel", "kill"], s);
    assert.deepEqual([of("PAUSED"), of("STOPPING_CANCELED"), of("DELETE_FAILED")], [["activate", "cancel", "kill"], ["kill"], ["delete"]]);
    for (const s of ["COMPLETED", "ERROR", "CANCELED"]) assert.deepEqual([of(s), of(s, true)], [["archive", "delete"], ["unarchive", "delete"]], s);
    for (const s of ["DELETED", "DELETING", "STOPPING_KILLED"]) assert.deepEqual(of(s), [], s);
});

test("sorting: numbers by size, texts by letters, what is missing last either way", () => {
    const by = (down: boolean) => [3, NaN, 10, -1, ""].sort((a, b) => compare(a, b, down));
    assert.deepEqual(by(false), [-1, 3, 10, NaN, ""]);
    assert.deepEqual(by(true), [10, 3, -1, NaN, ""]);
    assert.deepEqual(["b", "a", "", 2].sort((a, b) => compare(a, b, false)), [2, "a", "b", ""]);
});

test("by several columns: the next counts where the one before is equal, the id at last", () => {
    const rows = [{ id: 3, lr: 0.1, n: 2 }, { id: 1, lr: 0.1, n: 5 }, { id: 2, lr: 0.01, n: 2 }, { id: 4, lr: NaN, n: 2 }];
    const columns = (["lr", "n"] as const).map((id) => ({ id, of: (r: (typeof rows)[number]) => r[id] }));
    const ids = (...sort: string[]) => sorted(rows, columns, sort).map((r) => r.id).join("");
    assert.deepEqual([ids(), ids("lr"), ids("-lr"), ids("lr", "-n"), ids("n", "-lr"), ids("constructor", "-n")], ["1234", "2134", "1324", "2134", "3241", "1234"]);
});

test("a press on a head: up, down, not at all; with shift the other keys stay", () => {
    assert.deepEqual([pressed([], "a", false), pressed(["a"], "a", false), pressed(["-a"], "a", false), pressed(["b", "-a"], "a", false)], [["a"], ["-a"], [], ["a"]]);
    assert.deepEqual([pressed(["b"], "a", true), pressed(["a", "b"], "a", true), pressed(["-a", "b"], "a", true), pressed([], "a", true)],
        [["b", "a"], ["-a", "b"], ["b"], ["a"]]);
    assert.equal(pressed(["1", "2", "3", "4", "5"], "6", true).join(""), "23456");
    assert.deepEqual([placeOf(["b", "-a"], "a"), placeOf(["b"], "a")], [{ at: 1, isDown: true }, null]);
});
