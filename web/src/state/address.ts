/* The view of a page as its address and back. Any address gives a view: what cannot be read is as if it were not there. */

export interface Brush {
    name: string;
    lo: number;
    hi: number;
}

export const TABS = ["trials", "scatter", "heat", "importance", "rungs", "checkpoints", "logs", "timeline", "config", "code", "notes"] as const;
export type Tab = (typeof TABS)[number];
export const X_AXES = ["batches", "records", "epochs", "time", "clock"] as const;
export type XAxis = (typeof X_AXES)[number];

export interface ExpView {
    x: XAxis;
    /* "group.name"; "": the searcher's. */
    metric: string;
    logX: boolean;
    logY: boolean;
    smooth: number;
    zoom: [number, number] | null;
    brush: Brush[];
    trials: number[];
    tab: Tab;
    /* Of the scatter and the heat map: what is across, what is up, and what colours; "" = none chosen yet. */
    scatterX: string;
    scatterY: string;
    colour: string;
    /* Columns of the trials, the first the strongest; "-" before one turns it. */
    sort: string[];
    /* Hyperparameters by which trials are taken together. */
    group: string[];
    /* Axes of the parallel coordinates; none: the first ones. */
    axes: string[];
    /* Of the code: the path that is read; "": none chosen. */
    file: string;
    /* Whose log is read; 0: none chosen. */
    log: number;
    /* Lists of which only the first are asked for otherwise are whole (part.ts). */
    isWhole: boolean;
}

export const EXP_VIEW: ExpView = {
    x: "batches", metric: "", logX: false, logY: false, smooth: 0, zoom: null, brush: [], trials: [],
    tab: "trials", scatterX: "", scatterY: "", colour: "", sort: [], group: [], axes: [], file: "", log: 0, isWhole: false,
};

export const AXES_MAX = 40;
const SORTS_MOST = 5, GROUPS_MOST = 10;
const NAME_MAX = 1000; // of a name in an address, and as many entries of a list at most
const PATH_MAX = 4096; // of a file, as the master takes them

/* Decimal, finite; null for anything else ("", "0x1", "1e999", "NaN"). */
export function numberOf(text: string | null): number | null {
    if (text === null || !/^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text)) return null;
    const n = Number(text);
    return Number.isFinite(n) ? n : null;
}

/* "lo..hi" */
export function rangeOf(text: string | null): [number, number] | null {
    const parts = (text ?? "").split("..");
    if (parts.length !== 2) return null;
    const lo = numberOf(parts[0]!);
    const hi = numberOf(parts[1]!);
    return lo === null || hi === null || lo > hi ? null : [lo, hi];
}

export function idsOf(text: string | null): number[] {
    const ids = (text ?? "").split(",", NAME_MAX).filter((t) => /^[1-9]\d{0,15}$/.test(t)).map(Number);
    return [...new Set(ids)].filter(Number.isSafeInteger);
}

export function oneOf<T extends string>(text: string | null, of: readonly T[], otherwise: T): T {
    return of.includes(text as T) ? (text as T) : otherwise;
}

function nameOf(text: string | null): string {
    return (text ?? "").slice(0, NAME_MAX);
}

function pathOf(text: string | null): string {
    return (text ?? "").slice(0, PATH_MAX);
}

/* "name:lo..hi"; the name may have colons of its own. */
function brushOf(text: string): Brush | null {
    const at = text.lastIndexOf(":");
    const range = rangeOf(text.slice(at + 1));
    return at > 0 && at <= NAME_MAX && range ? { name: text.slice(0, at), lo: range[0], hi: range[1] } : null;
}

function brushesOf(list: string[]): Brush[] {
    const out = new Map<string, Brush>();
    for (const text of list.slice(0, NAME_MAX)) {
        const b = brushOf(text);
        if (b) out.set(b.name, b);
    }
    return [...out.values()];
}

export function expView(query: string): ExpView {
    const q = new URLSearchParams(query);
    return {
        x: oneOf(q.get("x"), X_AXES, "batches"),
        metric: nameOf(q.get("m")),
        logX: q.get("xs") === "log",
        logY: q.get("y") === "log",
        smooth: Math.min(0.99, Math.max(0, numberOf(q.get("smooth")) ?? 0)),
        zoom: rangeOf(q.get("z")),
        brush: brushesOf(q.getAll("brush")),
        trials: idsOf(q.get("t")),
        tab: oneOf(q.get("tab"), TABS, "trials"),
        scatterX: nameOf(q.get("sx")),
        scatterY: nameOf(q.get("sy")),
        colour: nameOf(q.get("sc")),
        sort: [...new Set(q.getAll("sort").map(nameOf).filter(Boolean))].slice(0, SORTS_MOST),
        group: [...new Set(q.getAll("g").map(nameOf).filter(Boolean))].slice(0, GROUPS_MOST),
        axes: [...new Set(q.getAll("ax").map(nameOf).filter(Boolean))].slice(0, AXES_MAX),
        file: pathOf(q.get("file")),
        log: idsOf(q.get("log"))[0] ?? 0,
        isWhole: q.get("all") === "1",
    };
}

/* Only what differs from the plain view, in a fixed order: the same view has one address. Starts with "?" or is "". */
export function expQuery(v: ExpView): string {
    const q = new URLSearchParams();
    if (v.x !== "batches") q.set("x", v.x);
    if (v.metric) q.set("m", v.metric);
    if (v.logX) q.set("xs", "log");
    if (v.logY) q.set("y", "log");
    if (v.smooth > 0) q.set("smooth", String(v.smooth));
    if (v.zoom) q.set("z", `${v.zoom[0]}..${v.zoom[1]}`);
    for (const b of v.brush) q.append("brush", `${b.name}:${b.lo}..${b.hi}`);
    if (v.trials.length) q.set("t", v.trials.join(","));
    if (v.tab !== "trials") q.set("tab", v.tab);
    if (v.scatterX) q.set("sx", v.scatterX);
    if (v.scatterY) q.set("sy", v.scatterY);
    if (v.colour) q.set("sc", v.colour);
    for (const key of v.sort) q.append("sort", key);
    for (const name of v.group) q.append("g", name);
    for (const name of v.axes) q.append("ax", name);
    if (v.file) q.set("file", v.file);
    if (v.log) q.set("log", String(v.log));
    if (v.isWhole) q.set("all", "1");
    const text = q.toString();
    return text && "?" + text;
}

export const LEVELS = ["TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"] as const;
export type Level = (typeof LEVELS)[number];

const LOG_TEXTS = 50; // of a kind

export interface LogView {
    search: string;
    regex: boolean;
    /* What does not match is shown, too, and what does is marked. */
    between: boolean;
    levels: Level[];
    ranks: number[];
    /* Which hosts, which of a process's outputs, and what wrote it: none chosen means all. */
    hosts: string[];
    outputs: string[];
    sources: string[];
    /* The line that a link points to; 0: none, the end is shown. */
    line: number;
}

/* Keys of the log in links of Determined's page, which repeat what is a list here. */
function withOldKeys(q: URLSearchParams): URLSearchParams {
    for (const [old, key] of [["rankId", "rank"], ["level", "level"]] as const) {
        const list = q.getAll(old).map((t) => t.replace("LOG_LEVEL_", ""));
        if (list.length && (old !== key || list.length > 1 || list[0] !== q.get(key))) q.set(key, list.join(","));
    }
    if (q.has("searchText") && !q.has("search")) q.set("search", q.get("searchText")!);
    for (const host of q.getAll("agentId")) q.append("host", host);
    return q;
}

export function logView(query: string, hash: string): LogView {
    const q = withOldKeys(new URLSearchParams(query));
    const ranks = (q.get("rank") ?? "").split(",", NAME_MAX).filter((t) => /^\d{1,9}$/.test(t)).map(Number);
    const link = /^#l=([1-9]\d{0,15})$/.exec(hash);
    const line = link ? Number(link[1]) : 0, texts = (key: string) => [...new Set(q.getAll(key).map(nameOf).filter(Boolean))].slice(0, LOG_TEXTS);
    return {
        search: nameOf(q.get("search")),
        regex: q.get("regex") === "1",
        between: q.get("between") === "1",
        levels: LEVELS.filter((l) => (q.get("level") ?? "").split(",").includes(l)),
        ranks: [...new Set(ranks)],
        hosts: texts("host"),
        outputs: texts("out"),
        sources: texts("source"),
        line: Number.isSafeInteger(line) ? line : 0,
    };
}

const LOG_KEYS = ["search", "regex", "between", "level", "rank", "host", "out", "source", "searchText", "rankId", "agentId"];

/* `beside`: the query of a page that shows a log beside other things, whose keys stay. */
export function logQuery(v: LogView, beside = ""): string {
    const q = new URLSearchParams(beside);
    for (const key of LOG_KEYS) q.delete(key);
    if (v.search) q.set("search", v.search);
    if (v.regex) q.set("regex", "1");
    if (v.between) q.set("between", "1");
    if (v.levels.length) q.set("level", v.levels.join(","));
    if (v.ranks.length) q.set("rank", v.ranks.join(","));
    for (const [key, list] of [["host", v.hosts], ["out", v.outputs], ["source", v.sources]] as const) for (const t of list) q.append(key, t);
    const text = q.toString();
    return (text && "?" + text) + (v.line ? `#l=${v.line}` : "");
}
