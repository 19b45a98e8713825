/* Who is signed in; signing in and out. */
import { signal } from "@preact/signals";
import { ApiError, call, isSignedIn, type Messages } from "../api/client";
import { pauseAfter } from "./live";
import { secretOf } from "./password";

export const me = signal<Messages["user.v1.User"] | null>(null);
/* Why the sign-in link that opened the page was not taken, in the master's words, until somebody has signed in. */
export const linkError = signal("");
/* Why it is not known yet whose session it is. */
export const startError = signal("");

async function ask(): Promise<void> {
    me.value = (await call("GET /api/v1/me")).user;
    isSignedIn.value = true;
}

/* A sign-in link's token is used once and taken out of the address before anything else happens. */
function takeToken(): string | null {
    const search = new URLSearchParams(location.search);
    const token = search.get("t");
    if (!token || location.pathname !== "/") return null;
    history.replaceState(null, "", "/");
    return token;
}

async function exchange(token: string): Promise<void> {
    try {
        await call("POST /api/v1/auth/link/exchange", { body: { token } });
    } catch (e) {
        if (!(e instanceof ApiError)) throw e;
        linkError.value = `Not signed in by the link: ${e.message}.`;
    }
}

/* At the start: whose session is it? One that is there already stays when a link is refused. Who cannot be told is asked for again: a master that is away says nothing of the session. */
export async function start(): Promise<void> {
    const token = takeToken();
    if (token) await exchange(token);
    for (let failures = 0; isSignedIn.value !== true; failures++) {
        try {
            await ask();
        } catch (e) {
            if (!(e instanceof ApiError)) throw e;
            const ms = pauseAfter(e, failures);
            startError.value = e.message;
            if (ms === null) break;
            await new Promise((wake) => setTimeout(wake, ms));
        }
    }
    isSignedIn.value ??= false;
}

export async function signIn(username: string, password: string): Promise<void> {
    await call("POST /api/v1/auth/login", { body: { username, ...await secretOf(password) } });
    await ask();
    linkError.value = "";
}

export async function signOut(): Promise<void> {
    await call("POST /api/v1/auth/logout");
    me.value = null;
    isSignedIn.value = false;
}
