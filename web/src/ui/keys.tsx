/* Everything by keyboard: what a key does, and the list of them. */
import { signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { keyed, KEYS, type Deed } from "../state/keys";
import { navigate } from "../state/router";
import "./talk/confirm.css";
import "./keys.css";
import { openPalette } from "./palette";

const isListed = signal(false);
const ROWS = "main :is(tr[data-experiment], tr[data-trial], tr[data-job], tr[data-row])";
const TEXT_FIELDS = "textarea, select, [contenteditable='true'], input:not([type='checkbox'], [type='radio'], [type='range'], [type='button'])";

/* Whoever types means the letter; also within the editor's own tree. */
function isTyping(e: KeyboardEvent): boolean {
    const at = e.composedPath()[0];
    return at instanceof Element && at.closest(TEXT_FIELDS) !== null;
}

/* What of a row can have the focus: of a link, enter opens the row; a row that has nothing has it itself. */
function focus(row: HTMLElement): void {
    const inner = row.querySelector<HTMLElement>("a[href]") ?? row.querySelector<HTMLElement>(":is(button, input, select):not(:disabled)");
    if (!inner) row.tabIndex = -1;
    (inner ?? row).focus();
    row.scrollIntoView({ block: "nearest" });
}

function step(by: 1 | -1): void {
    const rows = [...document.querySelectorAll<HTMLElement>(ROWS)].filter((r) => r.checkVisibility()), now = rows.findIndex((r) => r.contains(document.activeElement));
    const next = rows[now < 0 ? 0 : now + by];
    if (next) focus(next);
}

function tick(): void {
    document.activeElement?.closest(ROWS)?.querySelector<HTMLInputElement>("input[type='checkbox']")?.click();
}

function search(): void {
    const field = document.querySelector<HTMLInputElement>("main :is(input[type='search'], input[aria-label='Search'])");
    field?.focus();
    field?.select();
}

const DEEDS: Record<Exclude<Deed, `/${string}`>, () => void> = {
    search, tick, down: () => step(1), up: () => step(-1),
    actions: () => document.querySelector<HTMLElement>("main :is(.bulk-bar, .head .push) :is(button, a):not(:disabled)")?.focus(),
    list: () => { isListed.value = true; }, palette: openPalette,
};

function isAddress(deed: Deed): deed is `/det/${string}` {
    return deed.startsWith("/");
}

export function showKeys(): void {
    isListed.value = true;
}

function startKeys(): () => void {
    let pending = "";
    const onKey = (e: KeyboardEvent) => {
        if (e.defaultPrevented || e.isComposing || document.querySelector("dialog[open]")) return;
        const isPalette = (e.ctrlKey || e.metaKey) && !e.altKey && e.key.toLowerCase() === "k";
        if (!isPalette && (e.ctrlKey || e.metaKey || e.altKey || e.key === "Shift" || isTyping(e))) return;
        const got = isPalette ? { deed: "palette" as const, pending: "" } : keyed(pending, e.key);
        pending = got.pending;
        if (!got.deed) return;
        e.preventDefault();
        if (isAddress(got.deed)) navigate(got.deed);
        else DEEDS[got.deed]();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
}

function List() {
    const ref = useRef<HTMLDialogElement>(null), close = () => { isListed.value = false; };
    useEffect(() => ref.current!.showModal(), []);
    return <dialog ref={ref} class="confirm" aria-label="Keys" onCancel={close}>
        <h2>Keys</h2>
        <table class="grid keys"><thead><tr><th scope="col">key</th><th scope="col">what it does</th></tr></thead>
            <tbody>{KEYS.map((k) => <tr key={k.keys}><th scope="row">{k.keys.split(" ").map((c, i) => <span key={i}>{i > 0 && " then "}<kbd>{c}</kbd></span>)}</th><td>{k.says}</td></tr>)}
                <tr><th scope="row"><kbd>enter</kbd></th><td>open the row</td></tr>
                <tr><th scope="row"><kbd>↑</kbd> <kbd>↓</kbd></th><td>on the grip of a job: to another place in the queue</td></tr>
                <tr><th scope="row"><kbd>ctrl-space</kbd></th><td>in an editor: what could be written there</td></tr>
                <tr><th scope="row"><kbd>esc</kbd></th><td>leave what is open</td></tr></tbody></table>
        <div class="row"><button type="button" class="main" onClick={close}>Close</button></div>
    </dialog>;
}

export function Keys() {
    useLayoutEffect(startKeys, []); // with the page itself: a key that is pressed as soon as it is seen counts
    return isListed.value ? <List /> : null;
}
