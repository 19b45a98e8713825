/* The command palette: pages, views, what can be done here, and experiments by a part of their name or by number. */
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../api/client";
import { fits } from "../state/keys";
import { may } from "../state/may";
import { PLACES } from "../state/places";
import { theme } from "../state/prefs";
import { navigate } from "../state/router";
import { signOut } from "../state/session";
import { views, type Views } from "../state/views";
import "./talk/confirm.css";
import "./keys.css";
import { showKeys } from "./keys";
import { Name, shown } from "./words/name";
import { toast } from "./talk/toasts";

export interface Command { title: string; kind: string; run: () => void }
const isOpen = signal(false), FOUND_MOST = 8, SHOWN_MOST = 30, TYPED_MS = 150;

export function openPalette(): void {
    isOpen.value = true;
}

const go = (title: string, kind: string, address: string): Command => ({ title, kind, run: () => navigate(address) });

/* The buttons and links of the page's head, as they are now. */
function here(): Command[] {
    const all = document.querySelectorAll<HTMLElement>("main :is(.bulk-bar, .head .push) :is(button, a, summary):not(:disabled)");
    return [...all].map((b) => ({ title: shown(b.textContent?.trim() ?? ""), kind: "here", run: () => b.click() })).filter((c) => c.title);
}

/* Whose a view is, where it is somebody else's. */
export const viewCommands = ({ own, shown: others }: Pick<Views, "own" | "shown">): Command[] =>
    [...own.map((v) => go(v.name, "view", v.address)), ...others.map((v) => go(v.name, `view of ${shown(v.username)}`, v.address))];

function always(): Command[] {
    const leave = () => signOut().catch((e: Error) => toast(`Not signed out: ${e.message}`, true));
    return [
        ...PLACES.filter((p) => !p.takes || may(p.takes)).map((p) => go(p.title, "page", p.address)), go("New experiment", "page", "/det/experiments/new"),
        ...viewCommands(views.value),
        { title: "Theme: dark", kind: "setting", run: () => { theme.value = "dark"; } }, { title: "Theme: light", kind: "setting", run: () => { theme.value = "light"; } },
        { title: "Theme: as the system", kind: "setting", run: () => { theme.value = "system"; } },
        { title: "Keys", kind: "help", run: showKeys }, { title: "Sign out", kind: "session", run: () => void leave() },
    ];
}

function numbered(typed: string): Command[] {
    const n = /^#?([1-9]\d{0,14})$/.exec(typed.trim())?.[1];
    return n ? [go(`Experiment ${n}`, "experiment", `/det/experiments/${n}`), go(`Trial ${n}`, "trial", `/det/trials/${n}`),
        go(`Log of trial ${n}`, "trial", `/det/trials/${n}/logs`)] : [];
}

/* Experiments whose name has what is typed, when the keys rest. */
function useFound(typed: string): Command[] {
    const [found, setFound] = useState<{ of: string; all: Command[] }>({ of: "", all: [] });
    useEffect(() => {
        const stop = new AbortController(), timer = setTimeout(async () => {
            const query = { name: typed, sortBy: "SORT_BY_ID", orderBy: "ORDER_BY_DESC", limit: FOUND_MOST } as const;
            const r = await call("GET /api/v1/experiments", { query, signal: stop.signal }).catch(() => null); // told above the page
            if (r && !stop.signal.aborted) setFound({ of: typed, all: r.experiments.map((e) => go(`${e.name} #${e.id}`, "experiment", `/det/experiments/${e.id}`)) });
        }, TYPED_MS);
        return () => {
            clearTimeout(timer);
            stop.abort();
        };
    }, [typed]);
    return found.all;
}

/* The pointer chooses where it is moved to, not where it rests while the list changes below it. */
const moved = (e: MouseEvent): boolean => e.movementX !== 0 || e.movementY !== 0;

function Palette({ close }: { close: () => void }) {
    const ref = useRef<HTMLDialogElement>(null), [typed, setTyped] = useState(""), [at, setAt] = useState(0), [own] = useState(here);
    const found = useFound(typed.trim());
    const all = [...numbered(typed), ...[...own, ...always()].filter((c) => fits(c.title, typed)), ...found].slice(0, SHOWN_MOST), now = Math.min(at, all.length - 1);
    useEffect(() => ref.current!.showModal(), []);
    useEffect(() => ref.current!.querySelector("[aria-selected='true']")?.scrollIntoView({ block: "nearest" }), [now]);
    const run = (c: Command | undefined) => {
        if (!c) return;
        close();
        ref.current!.close(); // what it opens must not stand behind this
        c.run();
    };
    const onKeyDown = (e: KeyboardEvent) => {
        const by = { ArrowDown: 1, ArrowUp: -1 }[e.key];
        if (by && all.length) setAt((now + by + all.length) % all.length);
        else if (e.key === "Enter") run(all[now]);
        else return;
        e.preventDefault();
    };
    return <dialog ref={ref} class="confirm palette" aria-label="Commands" onCancel={close} onKeyDown={onKeyDown}>
        <input role="combobox" aria-label="Look for" aria-expanded="true" aria-controls="palette-list" aria-activedescendant={all.length ? `palette-${now}` : undefined}
            autocomplete="off" placeholder="a page, an experiment, an action" value={typed} onInput={(e) => { setTyped(e.currentTarget.value); setAt(0); }} />
        <ul id="palette-list" role="listbox" aria-label="What fits" tabIndex={-1}>{all.map((c, i) => <li key={i} id={`palette-${i}`} role="option" aria-selected={i === now}
            onMouseMove={(e) => moved(e) && setAt(i)} onClick={() => run(c)}><span><Name text={c.title} /></span><span class="soft">{c.kind}</span></li>)}
            {!all.length && <li role="option" aria-selected="false" aria-disabled="true">Nothing fits.</li>}</ul>
    </dialog>;
}

export function CommandPalette() {
    return isOpen.value ? <Palette close={() => { isOpen.value = false; }} /> : null;
}
