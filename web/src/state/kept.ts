/*
 * What the master keeps of how its reader wants tables to be, so that it is there in another browser: settings of users,
 * each with a path and a key. Only what the reader changes is written, key by key: of two tabs each keeps its own change,
 * and where both change the same the later one stays.
 */
import { computed, signal } from "@preact/signals";
import { call, type Messages } from "../api/client";
import { columnsOf, FIRST_COLUMNS, isMetric, PINNED_MOST, type Column, type ListView } from "./list_address";

type Setting = Messages["user.v1.UserWebSetting"];

/* The row height has the place that Determined's page keeps it in; it is the same in both. */
const LIST = "page.experiments", TABLES = "globalTableSettings";
export const ROWS = { SHORT: 32, MEDIUM: 36, TALL: 40, EXTRA_TALL: 44 } as const; // CSS pixels
export type RowHeight = keyof typeof ROWS;

const settings = signal<ReadonlyMap<string, string> | null>(null); // null: not heard yet
const nameOf = (path: string, key: string): string => `${path}\n${key}`;
let changes = 0, unsaved = 0;

export function forget(): void {
    settings.value = null;
}

export const mapOf = (all: readonly Setting[]): Map<string, string> => new Map(all.map((s) => [nameOf(s.storagePath, s.key), s.value]));

/* An answer from before a change must not undo it. */
export async function askKept(signal: AbortSignal): Promise<null> {
    const before = changes, got = (await call("GET /api/v1/users/setting", { signal })).settings;
    if (before === changes && !unsaved) settings.value = mapOf(got);
    return null;
}

async function keep(path: string, of: Record<string, unknown>): Promise<void> {
    const changed = Object.entries(of).map(([key, v]): Setting => ({ key, storagePath: path, value: JSON.stringify(v) }));
    settings.value = new Map([...settings.value ?? [], ...mapOf(changed)]);
    changes++;
    unsaved++;
    try {
        await call("POST /api/v1/users/setting", { body: { settings: changed } });
    } finally {
        unsaved--;
    }
}

function read(all: ReadonlyMap<string, string>, path: string, key: string): unknown {
    try {
        return JSON.parse(all.get(nameOf(path, key)) ?? "");
    } catch {
        return undefined;
    }
}

export function rowHeightOf(all: ReadonlyMap<string, string>): RowHeight {
    const v = read(all, TABLES, "rowHeight");
    return typeof v === "string" && Object.hasOwn(ROWS, v) ? v as RowHeight : "MEDIUM";
}

/* How the list looks: what its address has of it, and what its reader has where the address says nothing. */
export interface ListLook { columns: Column[]; hps: string[]; metrics: string[]; pinned: number; heat: boolean; unheated: string[] }

const textsOf = (v: unknown): string[] => (Array.isArray(v) ? v.filter((t): t is string => typeof t === "string") : []);

/* Whatever was kept, by an older page or by hand, gives a look. */
export function lookOf(all: ReadonlyMap<string, string>): ListLook {
    const named = textsOf(read(all, LIST, "columns")), pinned = read(all, LIST, "pinnedColumnsCount");
    return { columns: columnsOf(named.filter((n) => !n.includes(",")).join()) ?? [...FIRST_COLUMNS], hps: named.filter((n) => n.startsWith("hp.") && n.length > 3).map((n) => n.slice(3)), metrics: named.filter(isMetric),
        pinned: typeof pinned === "number" ? Math.max(0, Math.min(PINNED_MOST, Math.floor(pinned) || 0)) : 0,
        heat: read(all, LIST, "heatmapOn") === true, unheated: textsOf(read(all, LIST, "heatmapSkipped")) };
}

export const rowHeight = computed<RowHeight>(() => rowHeightOf(settings.value ?? new Map()));
/* null: not heard yet. */
export const ownLook = computed<ListLook | null>(() => settings.value && lookOf(settings.value));

export const keepRowHeight = (h: RowHeight): Promise<void> => keep(TABLES, { rowHeight: h });

/* The parts that are the reader's own and that the change names. */
export function keepLook(to: Partial<ListView>, now: ListLook): Promise<void> {
    const l = { ...now, ...to }, of: Record<string, unknown> = {};
    if (to.columns || to.hps || to.metrics) of["columns"] = [...(l.columns ?? now.columns), ...l.hps.map((n) => `hp.${n}`), ...l.metrics];
    if (typeof to.pinned === "number") of["pinnedColumnsCount"] = to.pinned;
    if (typeof to.heat === "boolean") of["heatmapOn"] = to.heat;
    if (to.unheated) of["heatmapSkipped"] = to.unheated;
    return keep(LIST, of);
}
