/* The frame around every page: where one is, who one is, whether the master answers, what was said. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { isReachable, isSignedIn } from "./api/client";
import { HOME, pageRoutes } from "./pages/routes";
import { SignIn, SignInAgain } from "./pages/sign_in";
import { askKept, forget } from "./state/kept";
import { PLACES } from "./state/places";
import { useLive } from "./state/live";
import { askRights, may } from "./state/may";
import { startTheme, theme, type Theme } from "./state/prefs";
import { match, navigate, path, startRouter } from "./state/router";
import { linkError, me, signOut, start, startError } from "./state/session";
import { Confirm } from "./ui/talk/confirm";
import { Keys, showKeys } from "./ui/keys";
import { CommandPalette, openPalette } from "./ui/palette";
import { toast, Toasts } from "./ui/talk/toasts";
import { Newer } from "./ui/newer";
import { Views } from "./ui/views";
import "./tokens.css";
import "./app.css";

const RIGHTS_MS = 60_000, KEPT_MS = 60_000;

function ThemeChoice() {
    return <label class="soft">Theme{" "}
        <select value={theme.value} onChange={(e) => { theme.value = e.currentTarget.value as Theme; }}>
            <option value="system">System</option>
            <option value="light">Light</option>
            <option value="dark">Dark</option>
        </select>
    </label>;
}

function Side() {
    const leave = () => signOut().catch((e: Error) => toast(`Not signed out: ${e.message}`, true));
    const [isOpen, setOpen] = useState(false); // on a small screen: what is not a page lies folded
    useEffect(() => setOpen(false), [path.value]);
    return <header class={isOpen ? "side open" : "side"}>
        <span class="brand">det</span>
        <button type="button" class="more" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>{isOpen ? "Less" : "More"}</button>
        <nav aria-label="Pages">
            {PLACES.filter((p) => !p.takes || may(p.takes)).map((p) => <a key={p.address} href={p.address} aria-current={path.value.startsWith(p.address) ? "page" : undefined}>{p.title}</a>)}
        </nav>
        <Views />
        <div class="foot">
            <span class="row"><button type="button" class="plain" title="ctrl-k" onClick={openPalette}>Commands</button>
                <button type="button" class="plain" title="?" onClick={showKeys}>Keys</button></span>
            <ThemeChoice />
            <span class="soft">{me.value?.displayName || me.value?.username}</span>
            <button type="button" onClick={leave}>Sign out</button>
        </div>
    </header>;
}

/* What the reader may do is asked now and then: roles are given and taken while a page is open. */
function Rights() {
    useLive(`rights of ${me.value?.id}`, "", askRights, () => RIGHTS_MS);
    return null;
}

/* Another browser of the reader's may change them meanwhile. */
function Kept() {
    useLive(`settings of ${me.value?.id}`, "", askKept, () => KEPT_MS);
    useEffect(() => forget, []);
    return null;
}

function Page() {
    for (const { pattern, title, page: Found } of pageRoutes) {
        const variables = match(pattern, path.value);
        if (!variables) continue;
        document.title = `${title} · det`;
        return <Found {...variables} />;
    }
    return <><h1>Nothing is here</h1><p>No page has the address {path.value}. <a href={HOME}>All experiments</a></p></>;
}

function App() {
    const home = path.value === "/" || path.value === "/det";
    useEffect(() => { if (home) navigate(HOME, true); }, [home]);
    const away = !isReachable.value && <div class="banner" role="alert">The master does not answer. This page asks again by itself.</div>;
    if (isSignedIn.value === null) return <>{away}<p class="page soft" role="status">{startError.value ? `It cannot be told yet who you are: ${startError.value}. The master is asked again by itself.` : "Asking the master…"}</p></>;
    if (!isSignedIn.value && !me.value) return <>{away}<SignIn why={linkError.value} /></>;
    return <div class="frame" key={me.value?.id}>
        <a class="skip" href="#page">To the page</a>
        {away}
        <Side />
        <main class="page" id="page" tabIndex={-1}><Newer /><Page /></main>
        <Confirm />
        <Keys />
        <CommandPalette />
        <Toasts />
        <Rights />
        <Kept />
        {!isSignedIn.value && <SignInAgain leave={() => { me.value = null; }} />}
    </div>;
}

startTheme();
startRouter();
void start().then(() => {
    if (!isSignedIn.value || !linkError.value) return;
    toast(linkError.value, true); // there is no form to say it on
    linkError.value = "";
});
render(<App />, document.getElementById("app")!);
