/* What is written of a user: a new one, what one is called and may, and a password. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { secretOf } from "../../state/password";
import { FormDialog } from "../../ui/talk/dialog";
import { shown } from "../../ui/words/name";
import type { User } from "./people_data";

interface DialogProps { close: () => void; again: () => void }

function Password({ value, set, label = "Password" }: { value: string; set: (t: string) => void; label?: string }) {
    return <label>{label} <input type="password" autocomplete="new-password" value={value} onInput={(e) => set(e.currentTarget.value)} /></label>;
}

/* Without a password nobody can sign in by that name yet. */
export function NewUser({ close, again }: DialogProps) {
    const [username, setName] = useState(""), [displayName, setDisplay] = useState(""), [password, setPassword] = useState(""), [admin, setAdmin] = useState(false);
    const save = async () => {
        await call("POST /api/v1/users", { body: { user: { username, displayName, admin, active: true } as User, ...await secretOf(password) } });
        again();
    };
    return <FormDialog title="New user" button="Create" save={save} close={close}>
        <label>Username <input value={username} required autocomplete="off" onInput={(e) => setName(e.currentTarget.value)} /></label>
        <label>Shown as <input value={displayName} onInput={(e) => setDisplay(e.currentTarget.value)} /></label>
        <Password value={password} set={setPassword} />
        <label class="tick"><input type="checkbox" checked={admin} onChange={(e) => setAdmin(e.currentTarget.checked)} /> administrator</label>
    </FormDialog>;
}

export function EditUser({ user, close, again }: DialogProps & { user: User }) {
    const [username, setName] = useState(user.username), [displayName, setDisplay] = useState(user.displayName), [admin, setAdmin] = useState(user.admin);
    const save = async () => {
        const body = { ...(username !== user.username ? { username } : {}), ...(displayName !== user.displayName ? { displayName } : {}), ...(admin !== user.admin ? { admin } : {}) };
        if (Object.keys(body).length) await call("PATCH /api/v1/users/{userId}", { path: { userId: user.id }, body });
        again();
    };
    return <FormDialog title={`Edit ${shown(user.username)}`} button="Save" save={save} close={close}>
        <label>Username <input value={username} required autocomplete="off" onInput={(e) => setName(e.currentTarget.value)} /></label>
        <label>Shown as <input value={displayName} onInput={(e) => setDisplay(e.currentTarget.value)} /></label>
        <label class="tick"><input type="checkbox" checked={admin} onChange={(e) => setAdmin(e.currentTarget.checked)} /> administrator</label>
    </FormDialog>;
}

export function NewPassword({ user, close, again }: DialogProps & { user: User }) {
    const [one, setOne] = useState(""), [two, setTwo] = useState("");
    const save = async () => {
        if (one !== two) throw new Error("the two are not the same");
        if (!one) throw new Error("it must not be blank");
        await call("PATCH /api/v1/users/{userId}", { path: { userId: user.id }, body: await secretOf(one) });
        again();
    };
    return <FormDialog title={`Password of ${shown(user.username)}`} button="Set" save={save} close={close}>
        <Password value={one} set={setOne} label="New password" />
        <Password value={two} set={setTwo} label="The same again" />
    </FormDialog>;
}
