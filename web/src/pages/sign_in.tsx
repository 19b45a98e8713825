/* The form that signs in: in place of any page, whose address stays, or above the one whose reader's session has ended. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError } from "../api/client";
import { signIn } from "../state/session";
import "./sign_in.css";

/* 429 and 403 say why in the master's own words; a wrong name and a wrong password are one thing. */
function textOf(e: unknown): string {
    if (!(e instanceof ApiError)) return String(e);
    return e.status === 401 ? "Incorrect username or password." : `Not signed in: ${e.message}.`;
}

function Form({ title, why }: { title: string; why: string }) {
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
    return <form onSubmit={submit}>
        <h1>{title}</h1>
        <label>Username
            <input name="username" autocomplete="username" required value={name} onInput={(e) => setName(e.currentTarget.value)} />
        </label>
        <label>Password
            <input name="password" type="password" autocomplete="current-password" value={password} onInput={(e) => setPassword(e.currentTarget.value)} />
        </label>
        <p class="error" role="alert">{own ?? why}</p>
        <button type="submit" class="main" disabled={busy}>Sign in</button>
        <p class="soft">Without a password at hand, <code>det auth link</code> prints a link that signs in once.</p>
    </form>;
}

export function SignIn({ why }: { why: string }) {
    return <main class="sign-in"><Form title="Sign in" why={why} /></main>;
}

/* A dialog may refuse to be closed once; the second Escape closes it, and those below it, unless the key itself is refused. */
function keepOpen(e: KeyboardEvent) {
    if (e.key === "Escape") e.preventDefault();
}

/* The page below it stays as it is, with all that is typed; who leaves it signs out. */
export function SignInAgain({ leave }: { leave: () => void }) {
    const ref = useRef<HTMLDialogElement>(null);
    useEffect(() => ref.current!.showModal(), []);
    useEffect(() => {
        window.addEventListener("keydown", keepOpen, true);
        return () => window.removeEventListener("keydown", keepOpen, true);
    }, []);
    return <dialog ref={ref} class="confirm sign-in-again" aria-label="Sign in again" onCancel={(e) => e.preventDefault()}>
        <Form title="Sign in again" why="Your session has ended. What you have typed is still there." />
        <button type="button" class="plain" onClick={leave}>Leave this page instead</button>
    </dialog>;
}
