/* One workspace: its projects, and who has a role in it. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { useLive } from "../../state/live";
import { may } from "../../state/may";
import { isWhole } from "../../state/part";
import { navigate } from "../../state/router";
import { Cut } from "../../ui/table/cut";
import { FormDialog } from "../../ui/talk/dialog";
import { Grid } from "../../ui/table/grid";
import { Name } from "../../ui/words/name";
import { ago, full } from "../../ui/words/time";
import { Problem } from "../problem";
import { ProjectActions, WorkspaceActions } from "./actions";
import { askProjects, LIVE_MS } from "./data";

function NewProject({ workspace, close, again }: { workspace: string; close: () => void; again: () => void }) {
    const [name, setName] = useState(""), [description, setDescription] = useState("");
    const save = async () => {
        await call("POST /api/v1/workspaces/{workspaceId}/projects", { path: { workspaceId: workspace }, body: { name, description } });
        again();
    };
    return <FormDialog title="New project" button="Create" save={save} close={close}>
        <label>Name <input value={name} required onInput={(e) => setName(e.currentTarget.value)} /></label>
        <label>Description <textarea rows={3} value={description} onInput={(e) => setDescription(e.currentTarget.value)} /></label>
    </FormDialog>;
}

function Members({ id }: { id: string }) {
    const live = useLive(`members of ${id}`, "", (signal) => call("GET /api/v1/roles/workspace/{workspaceId}", { path: { workspaceId: id }, signal }), () => LIVE_MS);
    const d = live.data, rows = (d?.assignments ?? []).flatMap((a) => [
        ...a.userRoleAssignments.map((u) => ({ who: d!.usersAssignedDirectly.find((x) => x.id === u.userId)?.username ?? `user ${u.userId}`, role: a.role.name })),
        ...a.groupRoleAssignments.map((g) => ({ who: `group ${d!.groups.find((x) => x.groupId === g.groupId)?.name ?? g.groupId}`, role: a.role.name }))]);
    return <section class="panel stacked" aria-label="Who has a role here"><header><h2>Who has a role here</h2><a class="push" href="/det/users?tab=roles">Give and take roles</a></header>
        <Problem error={live.error} what="The roles" />
        {d && <Grid name="Roles here" rows={rows} keyOf={(r) => `${r.who} ${r.role}`} none="Nobody: its owner and administrators act." columns={[
            { head: "who", cell: (r) => <Name text={r.who} /> }, { head: "role", cell: (r) => r.role }]} />}</section>;
}

export function WorkspacePage({ id = "" }: Record<string, string>) {
    const live = useLive(`workspace ${id}`, String(isWhole()), async (signal) => {
        const [{ workspace }, projects] = await Promise.all([call("GET /api/v1/workspaces/{id}", { path: { id }, signal }), askProjects(id, isWhole(), signal)]);
        return { workspace, projects };
    }, () => LIVE_MS), [isMaking, setMaking] = useState(false), w = live.data?.workspace;
    return <>
        <div class="head"><h1>{w ? <Name text={w.name} /> : `Workspace ${id}`}</h1>{w?.archived && <span class="chip">archived</span>}<a href="/det/workspaces">all workspaces</a>
            <span class="row push">{w && may("create", { hostId: w.userId, workspaceId: w.id }) && <button type="button" disabled={w.immutable || w.archived} title="det project create WORKSPACE NAME" onClick={() => setMaking(true)}>New project…</button>}
                {w && <WorkspaceActions w={w} again={live.again} gone={() => navigate("/det/workspaces")} />}</span></div>
        <Problem error={live.error} what="The workspace" />
        <Cut part={live.data?.projects ?? null} one="project" />
        {live.data && <Grid name="Projects" rows={live.data.projects.rows} keyOf={(p) => p.id} none="It has no project yet." columns={[
            { head: "project", cell: (p) => <a href={`/det/projects/${p.id}`}><Name text={p.name} /></a> }, { head: "description", cell: (p) => p.description && <Name text={p.description} /> },
            { head: "experiments", cell: (p) => p.numExperiments }, { head: "active", cell: (p) => p.numActiveExperiments },
            { head: "last started", cell: (p) => <span title={full(p.lastExperimentStartedAt)}>{ago(p.lastExperimentStartedAt, Date.now())}</span> },
            { head: "owner", cell: (p) => <Name text={p.username} /> }, { head: "state", cell: (p) => (p.archived ? "archived" : "open") },
            { head: "", cell: (p) => w && <ProjectActions p={p} host={w} again={live.again} gone={live.again} /> },
        ]} />}
        {w && <Members id={id} />}
        {isMaking && <NewProject workspace={id} close={() => setMaking(false)} again={live.again} />}
    </>;
}
