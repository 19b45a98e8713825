/* Who may sign in, the groups that they are in, and the roles that they have. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { useLive } from "../../state/live";
import { may } from "../../state/may";
import { me } from "../../state/session";
import { isWhole } from "../../state/part";
import { attempt } from "../../ui/talk/attempt";
import { confirm } from "../../ui/talk/confirm";
import { Cut } from "../../ui/table/cut";
import { count } from "../../ui/words/format";
import { Grid } from "../../ui/table/grid";
import { ADMINISTRATOR } from "../../ui/look";
import { Name, shown } from "../../ui/words/name";
import { word } from "../../ui/words/shell";
import { openTab, Tabs } from "../../ui/tabs";
import { ago, full } from "../../ui/words/time";
import { Problem } from "../problem";
import { Groups } from "./groups";
import { askUsers, LIVE_MS, type User } from "./people_data";
import { Roles } from "./roles";
import { EditUser, NewPassword, NewUser } from "./user_dialogs";

const TABS = [{ key: "users", title: "Users" }, { key: "groups", title: "Groups" }, { key: "roles", title: "Roles" }];

async function setActive(u: User, again: () => void): Promise<void> {
    const text = `Deactivate ${shown(u.username)}? Their sessions and tokens end at once; what they run goes on.`;
    if (u.active && !await confirm(text, "Deactivate", `det user deactivate ${word(u.username)}`)) return;
    await attempt("Not changed", () => call("PATCH /api/v1/users/{userId}", { path: { userId: u.id }, body: { active: !u.active } }));
    again();
}

interface Open { what: "new" | "edit" | "password"; user: User | null }

function Dialog({ open, close, again }: { open: Open | null; close: () => void; again: () => void }) {
    if (open?.what === "new") return <NewUser close={close} again={again} />;
    if (!open?.user) return null;
    return open.what === "edit" ? <EditUser user={open.user} close={close} again={again} /> : <NewPassword user={open.user} close={close} again={again} />;
}

function Users() {
    const live = useLive("users", String(isWhole()), (signal) => askUsers(isWhole(), signal), () => LIVE_MS), [open, setOpen] = useState<Open | null>(null), [search, setSearch] = useState("");
    const all = live.data?.rows ?? [], found = all.filter((u) => `${u.username} ${u.displayName}`.toLowerCase().includes(search.toLowerCase()));
    return <>
        <div class="head"><label class="quiet">Search <input type="search" value={search} onInput={(e) => setSearch(e.currentTarget.value)} /></label>
            <span class="soft">{count(found.length, "user")}</span>
            <span class="row push">{may("cluster") && <button type="button" title="det user create NAME" onClick={() => setOpen({ what: "new", user: null })}>New user…</button>}</span></div>
        {!may("cluster") && <p class="soft">You may change what you are called and your password; all else takes {ADMINISTRATOR}.</p>}
        <Problem error={live.error} what="The users" />
        <Cut part={live.data} one="user" />
        {live.data && <Grid hasFile name="Users" rows={found} keyOf={(u) => u.id} none="No user fits." columns={[
            { head: "user", cell: (u) => <a href={`/det/experiments?owner=${u.id}`} title="What they submitted"><Name text={u.username} /></a> },
            { head: "shown as", cell: (u) => u.displayName && <Name text={u.displayName} /> },
            { head: "may", cell: (u) => (u.admin ? "administrator" : "user") },
            { head: "state", cell: (u) => (u.active ? "active" : "deactivated") },
            { head: "signed in last", cell: (u) => <span title={full(u.lastAuthAt)}>{ago(u.lastAuthAt, Date.now())}</span> },
            { head: "", cell: (u) => (may("cluster") || u.id === me.value?.id) && <><button type="button" onClick={() => setOpen({ what: "edit", user: u })}>Edit…</button>
                <button type="button" onClick={() => setOpen({ what: "password", user: u })}>Password…</button>
                {may("cluster") && <button type="button" onClick={() => void setActive(u, live.again)}>{u.active ? "Deactivate" : "Activate"}</button>}</> },
        ]} />}
        <Dialog open={open} close={() => setOpen(null)} again={live.again} />
    </>;
}

export function UsersPage() {
    const open = openTab(TABS);
    return <><h1>Users</h1><Tabs name="Users" tabs={TABS} />{open === "groups" ? <Groups /> : open === "roles" ? <Roles /> : <Users />}</>;
}
