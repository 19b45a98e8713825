/* The address is what is seen: a path and its query, as one signal. */
import { computed, signal } from "@preact/signals";

const address = signal(typeof location === "undefined" ? "/" : location.pathname + location.search);

export const path = computed(() => address.value.split("?")[0] || "/");
export const query = computed(() => new URLSearchParams(address.value.split("?")[1] ?? ""));

/* Goes to an address of the page; `replace` leaves none behind to go back to. */
export function navigate(to: string, replace = false): void {
    if (to === address.value) return;
    if (replace) history.replaceState(null, "", to);
    else history.pushState(null, "", to);
    address.value = to.split("#")[0]!; // what is behind it is for the part of the page that it points to
}

/* The same page with other values in its query; null or "" takes one out. */
export function setQuery(values: Record<string, string | null>, replace = true): void {
    const next = new URLSearchParams(query.value);
    for (const [key, value] of Object.entries(values)) {
        if (value) next.set(key, value);
        else next.delete(key);
    }
    const text = next.toString();
    navigate(text ? `${path.value}?${text}` : path.value, replace);
}

/* "/a/:id" against a path: its variables, or null. */
export function match(pattern: string, given: string): Record<string, string> | null {
    const want = pattern.split("/"), have = given.replace(/\/+$/, "").split("/");
    if (want.length !== have.length) return null;
    const found: Record<string, string> = {};
    for (let i = 0; i < want.length; i++) {
        const w = want[i]!, h = have[i]!;
        if (!w.startsWith(":")) {
            if (w !== h) return null;
            continue;
        }
        try {
            found[w.slice(1)] = decodeURIComponent(h);
        } catch {
            return null; // a broken escape names nothing
        }
    }
    return found;
}

function isPlainClick(e: MouseEvent): boolean {
    return e.button === 0 && !e.ctrlKey && !e.metaKey && !e.shiftKey && !e.altKey && !e.defaultPrevented;
}

function onClick(e: MouseEvent): void {
    const a = e.target instanceof Element ? e.target.closest("a") : null;
    if (!a || !isPlainClick(e) || a.target || a.hasAttribute("download") || a.origin !== location.origin) return;
    if (a.pathname !== "/" && !a.pathname.startsWith("/det")) return; // a file of the master's
    if (a.hash && a.pathname === location.pathname && a.search === location.search) return;
    e.preventDefault();
    navigate(a.pathname + a.search);
}

/* Links and the browser's back and forward work without loading the page again. */
export function startRouter(): void {
    document.addEventListener("click", onClick);
    addEventListener("popstate", () => { address.value = location.pathname + location.search; });
}
