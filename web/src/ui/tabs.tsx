/* The parts of a page, one of which is open: which one is in the address. */
import { path, query } from "../state/router";

export interface Tab { key: string; title: string }

/* The first of them is open where the address names none. */
export function openTab(tabs: readonly Tab[]): string {
    const wanted = query.value.get("tab");
    return (tabs.find((t) => t.key === wanted) ?? tabs[0]!).key;
}

export function Tabs({ name, tabs }: { name: string; tabs: readonly Tab[] }) {
    const open = openTab(tabs);
    return <nav class="tabs" aria-label={name}>{tabs.map((t, i) =>
        <a key={t.key} href={i ? `${path.value}?tab=${t.key}` : path.value} aria-current={t.key === open ? "page" : undefined}>{t.title}</a>)}</nav>;
}
