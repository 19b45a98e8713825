/* The view of the list of experiments as its address and back. Any address gives a view: what cannot be read is not there. */
import { idsOf, oneOf } from "./address";

export const STATE_GROUPS = ["active", "paused", "stopping", "completed", "canceled", "failed", "deleting"] as const;
export type StateGroup = (typeof STATE_GROUPS)[number];
export const ARCHIVED = ["no", "only", "too"] as const;
export type Archived = (typeof ARCHIVED)[number];
export const COLUMNS = ["id", "name", "state", "progress", "trials", "best", "metric", "searcher", "labels", "owner", "pool", "started",
    "ended", "duration", "checkpoints", "size", "description", "project", "forked", "archived"] as const;
export type Column = (typeof COLUMNS)[number];
/* id and name are always there: a row has to be called something. */
export const FIXED: readonly Column[] = ["id", "name"];
export const FIRST_COLUMNS: readonly Column[] = ["id", "name", "state", "progress", "trials", "best", "labels", "owner", "started",
    "duration"];
/* What the master can sort by. */
export const SORTABLE: readonly Column[] = ["id", "name", "state", "progress", "trials", "best", "owner", "pool", "started", "ended",
    "checkpoints", "size", "description", "project", "forked"];

export interface ListView {
    search: string;
    states: StateGroup[];
    /* Ids of owners, of which one has to fit, and labels, all of which have to. */
    owners: number[];
    labels: string[];
    archived: Archived;
    sort: Column;
    isDown: boolean;
    /* null: the address names none, so the reader's own are shown. */
    columns: Column[] | null;
    /* Hyperparameters that are columns too, by flat name. */
    hps: string[];
}

const TEXT_MAX = 1000, LABELS_MAX = 50, HPS_MAX = 20;

/* Known ones in the order of the table, with those that are always there; null where none is known. */
export function columnsOf(text: string | null): Column[] | null {
    const named = new Set((text ?? "").split(",", TEXT_MAX));
    if (!COLUMNS.some((c) => named.has(c))) return null;
    return COLUMNS.filter((c) => named.has(c) || FIXED.includes(c));
}

export function listView(query: string): ListView {
    const q = new URLSearchParams(query), states = (q.get("state") ?? "").split(",");
    const sort = oneOf(q.get("sort"), SORTABLE.flatMap((c) => [c, `-${c}`]), "-id");
    const labels = q.getAll("label").slice(0, LABELS_MAX).map((l) => l.slice(0, TEXT_MAX)).filter(Boolean);
    return {
        search: (q.get("search") ?? "").slice(0, TEXT_MAX),
        states: STATE_GROUPS.filter((s) => states.includes(s)),
        owners: idsOf(q.get("owner")),
        labels: [...new Set(labels)],
        archived: oneOf(q.get("archived"), ARCHIVED, "no"),
        sort: sort.replace("-", "") as Column,
        isDown: sort.startsWith("-"),
        columns: columnsOf(q.get("c")),
        hps: [...new Set(q.getAll("hp").map((n) => n.slice(0, TEXT_MAX)).filter(Boolean))].slice(0, HPS_MAX),
    };
}

/* Only what differs from the plain view, in a fixed order: the same view has one address. Starts with "?" or is "". */
export function listQuery(v: ListView): string {
    const q = new URLSearchParams(), sort = (v.isDown ? "-" : "") + v.sort;
    if (v.search) q.set("search", v.search);
    if (v.states.length) q.set("state", v.states.join(","));
    if (v.owners.length) q.set("owner", v.owners.join(","));
    for (const l of v.labels) q.append("label", l);
    if (v.archived !== "no") q.set("archived", v.archived);
    if (sort !== "-id") q.set("sort", sort);
    if (v.columns) q.set("c", v.columns.join(","));
    for (const name of v.hps) q.append("hp", name);
    const text = q.toString();
    return text && "?" + text;
}

/* Whether rows may be missing because of what was asked for. */
export function isFiltered(v: ListView): boolean {
    return v.search !== "" || v.states.length + v.owners.length + v.labels.length > 0;
}
