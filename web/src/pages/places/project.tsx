/* One project: what it is for, and its experiments, the newest first. */
import { useEffect } from "preact/hooks";
import { call } from "../../api/client";
import { formerList } from "../../state/former";
import { useLive } from "../../state/live";
import { navigate, query } from "../../state/router";
import { count } from "../../ui/words/format";
import { Grid } from "../../ui/table/grid";
import { Name } from "../../ui/words/name";
import { State } from "../../ui/state";
import { ago, full } from "../../ui/words/time";
import { filteredProject } from "../old_links";
import { Problem } from "../problem";
import { ProjectActions } from "./actions";
import { LIVE_MS } from "./data";

const NEWEST = 100;

export function ProjectPage({ id = "", tab }: Record<string, string>) {
    const live = useLive(`project ${id}`, "", async (signal) => {
        const [{ project }, { experiments }] = await Promise.all([call("GET /api/v1/projects/{id}", { path: { id }, signal }),
            call("GET /api/v1/experiments", { query: { projectId: Number(id), sortBy: "SORT_BY_ID", orderBy: "ORDER_BY_DESC", limit: NEWEST }, signal })]);
        return { project, experiments, host: (await call("GET /api/v1/workspaces/{id}", { path: { id: project.workspaceId }, signal })).workspace };
    }, () => LIVE_MS), p = live.data?.project, host = live.data?.host;
    const former = useLive("settings of the former page", "", async (signal) => (await call("GET /api/v1/users/setting", { signal })).settings, () => null), kept = formerList(former.data ?? [], Number(id));
    const filtered = filteredProject(id, query.value);
    useEffect(() => { if (filtered) navigate(filtered, true); }, [filtered]); // an old link to its list
    return <>
        <div class="head"><h1>{p ? <Name text={p.name} /> : `Project ${id}`}</h1>{p?.archived && <span class="chip">archived</span>}
            {p && <span>in <a href={`/det/workspaces/${p.workspaceId}`}><Name text={p.workspaceName || `workspace ${p.workspaceId}`} /></a></span>}
            {p && host && <span class="row push"><ProjectActions p={p} host={host} again={live.again} gone={() => navigate(`/det/workspaces/${host.id}`)} /></span>}</div>
        {tab === "notes" && <p role="note">A project has no notes of its own here: those of an experiment are on its page.</p>}
        <Problem error={live.error} what="The project" />
        {p && <p class="facts soft">{p.description && <Name text={p.description} />}<span>{count(p.numExperiments, "experiment")}, {p.numActiveExperiments} active</span>
            {p.numExperiments > NEWEST && <span>the newest {NEWEST} are below</span>}
            <a href={filteredProject(id, new URLSearchParams("search="))!}>All of them, with filters</a>
            {kept && <a href={kept.address} title={`Filter, order and columns that Determined's page kept for you${kept.left ? "; what this list cannot have is left out" : ""}`}>
                As you had them listed{kept.left > 0 && `, without ${count(kept.left, "condition")}`}</a>}</p>}
        {live.data && <Grid name="Experiments" rows={live.data.experiments} keyOf={(e) => e.id} none="It has no experiment yet: an experiment's Move… brings one here." columns={[
            { head: "experiment", cell: (e) => <a href={`/det/experiments/${e.id}`}><Name text={e.name} /> #{e.id}</a> }, { head: "state", cell: (e) => <State state={e.state} /> },
            { head: "owner", cell: (e) => <Name text={e.username} /> }, { head: "started", cell: (e) => <span title={full(e.startTime)}>{ago(e.startTime, Date.now())}</span> },
        ]} />}
    </>;
}
