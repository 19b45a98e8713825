/* Groups: names for several users, who can be given roles together. */
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
import { ADMINISTRATOR, OnlyLook } from "../../ui/look";
import { Name, shown } from "../../ui/words/name";
import { word } from "../../ui/words/shell";
import { Problem } from "../problem";
import { askGroups, askUsers, calledBy, forgetGroups, LIVE_MS, type Group } from "./people_data";

/* What makes the group of before the one that was chosen. */
export function membersChange(was: readonly number[], is: readonly number[]): { addUsers: number[]; removeUsers: number[] } {
    return { addUsers: is.filter((id) => !was.includes(id)), removeUsers: was.filter((id) => !is.includes(id)) };
}

function GroupDialog({ group, close, again }: { group: Group | null; close: () => void; again: () => void }) {
    const was = group?.users.map((u) => u.id) ?? [], [name, setName] = useState(group?.name ?? ""), [is, setIs] = useState(was);
    const users = useLive("users", "", (signal) => askUsers(true, signal), () => null);
    const save = async () => {
        if (!group) await call("POST /api/v1/groups", { body: { name, addUsers: is } });
        else await call("PUT /api/v1/groups/{groupId}", { path: { groupId: group.groupId }, body: { groupId: group.groupId, ...(name !== group.name ? { name } : {}), ...membersChange(was, is) } });
        forgetGroups();
        again();
    };
    return <FormDialog title={group ? `Edit group ${shown(group.name)}` : "New group"} button={group ? "Save" : "Create"} save={save} close={close}>
        <label>Name <input value={name} required onInput={(e) => setName(e.currentTarget.value)} /></label>
        <fieldset class="choices"><legend>Who is in it</legend>{(users.data?.rows ?? []).map((u) => <label key={u.id} class="tick"><input type="checkbox" checked={is.includes(u.id)}
            onChange={() => setIs(is.includes(u.id) ? is.filter((id) => id !== u.id) : [...is, u.id])} /> <Name text={calledBy(u)} /></label>)}</fieldset>
    </FormDialog>;
}

async function remove(g: Group, again: () => void): Promise<void> {
    if (!await confirm(`Delete the group ${shown(g.name)}? Its roles go with it.`, "Delete", `det user-group delete ${word(g.name)}`)) return;
    await attempt("Not deleted", () => call("DELETE /api/v1/groups/{groupId}", { path: { groupId: g.groupId } }));
    forgetGroups();
    again();
}

export function Groups() {
    const live = useLive("groups", String(isWhole()), (signal) => askGroups(isWhole(), signal), () => LIVE_MS), [open, setOpen] = useState<Group | "new" | null>(null);
    return <>
        <div class="head"><span class="soft">{count(live.data?.total ?? 0, "group")}</span>
            <span class="row push">{may("cluster") && <button type="button" title="det user-group create NAME" onClick={() => setOpen("new")}>New group…</button>}</span></div>
        {!may("cluster") && <OnlyLook what="them" who={ADMINISTRATOR} />}
        <Problem error={live.error} what="The groups" />
        <Cut part={live.data} one="group" />
        {live.data && <Grid hasFile name="Groups" rows={live.data.rows} keyOf={(g) => g.groupId} none="There is no group yet." columns={[
            { head: "group", cell: (g) => <Name text={g.name} /> },
            { head: "who is in it", cell: (g) => <Name text={g.users.map((u) => u.username).join(", ") || "nobody"} /> },
            { head: "", cell: (g) => may("cluster") && <><button type="button" onClick={() => setOpen(g)}>Edit…</button><button type="button" onClick={() => void remove(g, live.again)}>Delete</button></> },
        ]} />}
        {open && <GroupDialog group={open === "new" ? null : open} close={() => setOpen(null)} again={live.again} />}
    </>;
}
