/* The form that signs in; it stands in place of any page, whose address stays. */
import { useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { signIn } from "../state/session";
import "./sign_in.css";

/* 429 and 403 say why in the master's own words; a wrong name and a wrong password are one thing. */
function textOf(e: unknown): string {
    if (!(e instanceof ApiError)) return String(e);
    return e.status === 401 ? "Incorrect username or password." : `Not signed in: ${e.message}.`;
}

export function SignIn({ why }: { why: string }) {
    const [name, setName] = useState("");
    const [password, setPassword] = useState("");
    // What a link was refused with stands until the form itself has something to say.
    const [own, setOwn] = useState<string | null>(null);
    const [busy, setBusy] = useState(false);
    const submit = async (e: Event) => {
        e.preventDefault();
        setBusy(true);
        setOwn("");
        try {
            await signIn(name, password);
        } catch (e) {
            setOwn(textOf(e));
            setPassword("");
            setBusy(false);
        }
    };
    return <main class="sign-in">
        <form onSubmit={submit}>
            <h1>Sign in</h1>
            <label>Username
                <input name="username" autocomplete="username" required value={name} onInput={(e) => setName(e.currentTarget.value)} />
            </label>
            <label>Password
                <input name="password" type="password" autocomplete="current-password" value={password} onInput={(e) => setPassword(e.currentTarget.value)} />
            </label>
            <p class="error" role="alert">{own ?? why}</p>
            <button type="submit" class="main" disabled={busy}>Sign in</button>
            <p class="soft">Without a password at hand, <code>det auth link</code> prints a link that signs in once.</p>
        </form>
    </main>;
}
