/* The view of the list of experiments as its address and back. Any address gives a view: what cannot be read is not there. */
import { idsOf, oneOf } from "./address";
import { fieldsOf, treeOf, treeText, type Group } from "./filter_tree";

/* The four after "active" are what an active one is shown as. */
export const STATE_GROUPS = ["active", "queued", "pulling", "starting", "running", "paused", "stopping", "completed", "canceled", "failed", "deleting"] as const;
export type StateGroup = (typeof STATE_GROUPS)[number];
export const OF_ACTIVE: readonly StateGroup[] = ["queued", "pulling", "starting", "running"];
export const ARCHIVED = ["no", "only", "too"] as const;
export type Archived = (typeof ARCHIVED)[number];
export const COLUMNS = ["id", "name", "state", "progress", "trials", "best", "metric", "searcher", "labels", "owner", "pool", "started",
    "ended", "duration", "checkpoints", "size", "description", "project", "forked", "archived"] as const;
export type Column = (typeof COLUMNS)[number];
/* id and name are always there: a row has to be called something. */
export const FIXED: readonly Column[] = ["id", "name"];
export const FIRST_COLUMNS: readonly Column[] = ["id", "name", "state", "progress", "trials", "best", "labels", "owner", "started",
    "duration"];
export interface ListView {
    search: string;
    states: StateGroup[];
    /* Ids of owners, of which one has to fit, and labels, all of which have to. */
    owners: number[];
    labels: string[];
    archived: Archived;
    /* Conditions that are put together; null: none. */
    tree: Group | null;
    /* Keys of columns (below), the first the strongest; "-" before one turns it. */
    sort: string[];
    /* null: the address names none, so the reader's own are shown. */
    columns: Column[] | null;
    /* Hyperparameters that are columns too, by flat name. */
    hps: string[];
    /* Metrics that are columns too: "validation.loss.min", as the best trial has it. */
    metrics: string[];
    /* How many columns stay at the left, and whether numbers are coloured by how high they are; null: as the reader has them. */
    pinned: number | null;
    heat: boolean | null;
    /* Columns that are not coloured then: "best", or a metric. */
    unheated: string[];
    /* What the trials of all that match are grouped by: "hp.lr", "tags", .. (GROUPED); []: it is the list. */
    group: string[];
    /* Columns of the groups that sort them: one of `group`, "trials", "experiments", a metric; "-" before one turns it. []: as the master has them. */
    groupSort: string[];
    /* Groups whose members are shown, each by the JSON of its values. */
    open: string[];
    /* Trials that are chosen among the members. */
    trials: number[];
    /* Experiments that the list, and its groups, are of; []: all. */
    only: number[];
}

export const GROUPED = { tags: "label", project: "project", user: "owner", name: "name of the experiment", id: "experiment", searcherType: "searcher", resourcePool: "pool" } as const;
const GROUPS_MAX = 5, OPEN_MAX = 20;
const TEXT_MAX = 1000, LABELS_MAX = 50, HPS_MAX = 20, SORTS_MAX = 5, TREE_MAX = 6000;
export const FIRST_SORT = "-id";
/* Columns at the left that stay where the others scroll. */
export const PINNED_MOST = 5;
const METRIC = /^[^.]+\..+\.(last|min|max|mean)$/s;

export const isMetric = (name: string): boolean => METRIC.test(name) && !name.startsWith("hp.");

/* What a key sorts by: a column of the list, "hp.NAME", or a metric as above. */
export function isKey(key: string): boolean {
    const name = key.replace(/^-/, "");
    return COLUMNS.includes(name as Column) || (name.startsWith("hp.") && name.length > 3) || METRIC.test(name);
}

const textsOf = (all: string[], most: number): string[] => [...new Set(all.map((t) => t.slice(0, TEXT_MAX)).filter(Boolean))].slice(0, most);

/* A column once. */
function keysOf(keys: string[], isKnown: (key: string) => boolean): string[] {
    const names = new Set<string>(), is = (k: string) => isKnown(k) && !names.has(k.replace(/^-/, "")) && names.add(k.replace(/^-/, ""));
    return textsOf(keys, TEXT_MAX).filter(is).slice(0, SORTS_MAX);
}

function sortOf(keys: string[]): string[] {
    const known = keysOf(keys, isKey);
    return known.length ? known : [FIRST_SORT];
}

const isGrouping = (name: string): boolean => Object.hasOwn(GROUPED, name) || (name.startsWith("hp.") && name.length > 3);

function isGroupKey(key: string): boolean {
    const name = key.replace(/^-/, "");
    return name === "trials" || name === "experiments" || isGrouping(name) || METRIC.test(name);
}

/* Whether a text is the JSON of so many values. */
function isValues(text: string, n: number): boolean {
    try {
        const values: unknown = JSON.parse(text);
        return Array.isArray(values) && values.length === n;
    } catch {
        return false;
    }
}

/* Known ones in the order of the table, with those that are always there; null where none is known. */
export function columnsOf(text: string | null): Column[] | null {
    const named = new Set((text ?? "").split(",", TEXT_MAX));
    if (!COLUMNS.some((c) => named.has(c))) return null;
    return COLUMNS.filter((c) => named.has(c) || FIXED.includes(c));
}

const pinnedOf = (text: string | null): number | null => (text !== null && /^\d$/.test(text) ? Math.min(PINNED_MOST, Number(text)) : null);
const heatOf = (text: string | null): boolean | null => (text === "1" || text === "0" ? text === "1" : null);

export function listView(query: string): ListView {
    const q = new URLSearchParams(query), states = (q.get("state") ?? "").split(",");
    const tree = q.get("f"), group = textsOf(q.getAll("g").filter(isGrouping), GROUPS_MAX);
    return {
        search: (q.get("search") ?? "").slice(0, TEXT_MAX),
        states: STATE_GROUPS.filter((s) => states.includes(s)),
        owners: idsOf(q.get("owner")),
        labels: textsOf(q.getAll("label"), LABELS_MAX),
        archived: oneOf(q.get("archived"), ARCHIVED, "no"),
        tree: tree && tree.length <= TREE_MAX ? treeOf(tree) : null,
        sort: sortOf(q.getAll("sort")),
        columns: columnsOf(q.get("c")),
        hps: textsOf(q.getAll("hp"), HPS_MAX),
        metrics: textsOf(q.getAll("mc").filter((m) => METRIC.test(m)), HPS_MAX),
        pinned: pinnedOf(q.get("pin")),
        heat: heatOf(q.get("heat")),
        unheated: textsOf(q.getAll("nh").filter((n) => n === "best" || METRIC.test(n)), HPS_MAX),
        group,
        groupSort: keysOf(q.getAll("gs"), isGroupKey),
        open: textsOf(q.getAll("go"), TEXT_MAX).filter((text) => isValues(text, group.length)).slice(0, OPEN_MAX),
        trials: idsOf(q.get("t")),
        only: idsOf(q.get("e")),
    };
}

/* Nothing is asked for. */
export const LIST_VIEW: ListView = listView("");

/* Why the address's conditions are not read; "": they are, or there are none. */
export function unreadOf(query: string): string {
    const f = new URLSearchParams(query).get("f");
    if (!f || listView(query).tree) return "";
    return f.length > TREE_MAX ? `they take ${f.length.toLocaleString("en")} characters, and ${TREE_MAX.toLocaleString("en")} are read` : "they cannot be read";
}

/* Only what differs from the plain view, in a fixed order: the same view has one address. Starts with "?" or is "". */
export function listQuery(v: ListView): string {
    const q = new URLSearchParams();
    if (v.search) q.set("search", v.search);
    if (v.states.length) q.set("state", v.states.join(","));
    if (v.owners.length) q.set("owner", v.owners.join(","));
    for (const l of v.labels) q.append("label", l);
    if (v.archived !== "no") q.set("archived", v.archived);
    if (v.tree) q.set("f", treeText(v.tree));
    if (v.sort.join() !== FIRST_SORT) for (const key of v.sort) q.append("sort", key);
    if (v.columns) q.set("c", v.columns.join(","));
    for (const name of v.hps) q.append("hp", name);
    for (const name of v.metrics) q.append("mc", name);
    if (v.pinned !== null) q.set("pin", String(v.pinned));
    if (v.heat !== null) q.set("heat", v.heat ? "1" : "0");
    for (const name of v.unheated) q.append("nh", name);
    for (const name of v.group) q.append("g", name);
    for (const key of v.groupSort) q.append("gs", key);
    for (const values of v.open) q.append("go", values);
    if (v.trials.length) q.set("t", v.trials.join(","));
    if (v.only.length) q.set("e", v.only.join(","));
    const text = q.toString();
    return text && "?" + text;
}

/* Whether rows may be missing because of what was asked for. */
export function isFiltered(v: ListView): boolean {
    return v.search !== "" || v.states.length + v.owners.length + v.labels.length + v.only.length + fieldsOf(v.tree).length > 0;
}
