/* Who has which role, and where: it is given, and taken away. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { useLive } from "../../state/live";
import { may } from "../../state/may";
import { isWhole } from "../../state/part";
import { attempt } from "../../ui/talk/attempt";
import { confirm } from "../../ui/talk/confirm";
import { Cut } from "../../ui/table/cut";
import { FormDialog } from "../../ui/talk/dialog";
import { count } from "../../ui/words/format";
import { Grid } from "../../ui/table/grid";
import { OnlyLook } from "../../ui/look";
import { Name, shown } from "../../ui/words/name";
import { Problem } from "../problem";
import { askRoles, calledBy, givable, grantBody, LIVE_MS, type Grant, type RolesNow } from "./people_data";

/* "u7" and "g3": one list to choose from. */
function whoOf(text: string): { userId: number; groupId: number } {
    const id = Number(text.slice(1));
    return text.startsWith("u") ? { userId: id, groupId: 0 } : { userId: 0, groupId: id };
}

function GiveDialog({ now, mayIn, close, again }: { now: RolesNow; mayIn: (id: number | null) => boolean; close: () => void; again: () => void }) {
    const { roles, workspaces, everywhere } = givable(now, mayIn);
    const [roleId, setRole] = useState(roles[0]?.roleId ?? 0), [who, setWho] = useState(""), [workspace, setWorkspace] = useState(everywhere ? 0 : workspaces[0]?.id ?? 0);
    const role = now.roles.find((r) => r.roleId === roleId), isLocal = role?.scopeTypeMask.workspace ?? false;
    const save = async () => {
        await call("POST /api/v1/roles/add-assignments", { body: grantBody({ roleId, ...whoOf(who), workspace: isLocal ? workspace || null : null }) });
        again();
    };
    return <FormDialog title="Give a role" button="Give" save={save} close={close}>
        <label>Role <select value={roleId} onChange={(e) => setRole(Number(e.currentTarget.value))}>{roles.map((r) => <option key={r.roleId} value={r.roleId}>{shown(r.name)}</option>)}</select></label>
        <label>To <select value={who} required onChange={(e) => setWho(e.currentTarget.value)}><option value="">choose</option>
            {now.users.map((u) => <option key={u.id} value={`u${u.id}`}>{shown(calledBy(u))}</option>)}
            {now.groups.map((g) => <option key={g.groupId} value={`g${g.groupId}`}>group {shown(g.name)}</option>)}</select></label>
        <label>In <select value={isLocal ? workspace : 0} disabled={!isLocal} onChange={(e) => setWorkspace(Number(e.currentTarget.value))}>{everywhere && <option value={0}>the whole cluster</option>}
            {workspaces.map((w) => <option key={w.id} value={w.id}>{shown(w.name)}</option>)}</select></label>
        <p class="soft">{role?.permissions.map((p) => p.name).join(", ")}</p>
    </FormDialog>;
}

async function take(g: Grant, again: () => void): Promise<void> {
    if (!await confirm(`Take ${shown(g.role.name)} in ${shown(g.where)} from ${shown(g.who)}?`, "Take away")) return;
    await attempt("Not taken away", () => call("POST /api/v1/roles/remove-assignments", { body: grantBody({ roleId: g.role.roleId, userId: g.userId, groupId: g.groupId, workspace: g.workspace }) }));
    again();
}

export function Roles() {
    const live = useLive("roles", String(isWhole()), (signal) => askRoles(isWhole(), signal), () => LIVE_MS), [isGiving, setGiving] = useState(false), now = live.data;
    const mayIn = (id: number | null) => (id === null ? may("cluster") : may("grant", { hostId: now?.workspaces.find((w) => w.id === id)?.userId ?? 0, workspaceId: id }));
    const gives = mayIn(null) || (now?.workspaces ?? []).some((w) => mayIn(w.id));
    return <>
        <div class="head"><span class="soft">{count(now?.grants.length ?? 0, "role")} given</span>
            <span class="row push">{gives && <button type="button" title="det rbac assign-role ROLE" disabled={!now} onClick={() => setGiving(true)}>Give a role…</button>}</span></div>
        {!gives && <OnlyLook what="them" who="an administrator, or who made the workspace" />}
        <Problem error={live.error} what="The roles" />
        {now?.cut.map(({ one, part }) => <Cut key={one} part={part} one={one} />)}
        {now && <Grid hasFile name="Roles given" rows={now.grants} keyOf={(g) => `${g.role.roleId} ${g.userId} ${g.groupId} ${g.workspace}`} none="No role is given to anybody: owners and administrators act." columns={[
            { head: "who", cell: (g) => <Name text={g.who} /> }, { head: "role", cell: (g) => <Name text={g.role.name} /> }, { head: "where", cell: (g) => <Name text={g.where} /> },
            { head: "", cell: (g) => mayIn(g.workspace) && <button type="button" onClick={() => void take(g, live.again)}>Take away</button> },
        ]} />}
        {now && <section class="panel stacked" aria-label="What roles may"><h2>What roles may</h2><Grid name="What roles may" rows={now.roles} keyOf={(r) => r.roleId} none="There is none." columns={[
            { head: "role", cell: (r) => <Name text={r.name} /> },
            { head: "may be given", cell: (r) => (r.scopeTypeMask.workspace ? "in a workspace or the whole cluster" : "in the whole cluster") },
            { head: "may", cell: (r) => r.permissions.map((p) => p.name).join(", ") },
        ]} /></section>}
        {isGiving && now && <GiveDialog now={now} mayIn={mayIn} close={() => setGiving(false)} again={live.again} />}
    </>;
}
