/* Columns whose numbers are coloured, from the lowest to the highest of all that match, not only of those in sight. */
import { asked } from "../../state/filter_tree";
import type { ListView } from "../../state/list_address";
import { heat, onHeat } from "../../charts/palette";
import type { Shown } from "./columns";
import { formsetOf } from "./data";
import { search, sortText } from "./search";

export type Range = readonly [number, number];
/* By the column's key in the sort. */
export type Ranges = ReadonlyMap<string, Range>;

const MOST = 1.7e308; // infinities and what is no number are not coloured

/* Those that are shown and may be coloured. */
export const heatable = (columns: readonly Shown[]): Shown[] => columns.filter((c) => c.kind.heat);

async function askEnd(v: ListView, column: Shown, isHighest: boolean, signal: AbortSignal): Promise<number | null> {
    const name = sortText([column.sort]).replace(/=asc$/, ""), filter = formsetOf(v, asked(name, ">=", -MOST), asked(name, "<=", MOST));
    const { rows } = await search(filter, sortText([isHighest ? `-${column.sort}` : column.sort]), 0, 1, signal), value = rows[0] && column.kind.heat!(rows[0]);
    return typeof value === "number" ? value : null;
}

export async function askRanges(v: ListView, columns: readonly Shown[], signal: AbortSignal): Promise<Ranges> {
    const ranges = new Map<string, Range>();
    for (const c of columns) {
        const [lo, hi] = [await askEnd(v, c, false, signal), await askEnd(v, c, true, signal)];
        if (lo !== null && hi !== null) ranges.set(c.sort, [lo, hi]);
    }
    return ranges;
}

/* null: no colour. A value beyond what was asked a while ago has the end's. */
export function heatStyle(range: Range | undefined, value: unknown, dark: boolean): { background: string; color: string } | null {
    if (!range || typeof value !== "number" || !Number.isFinite(value)) return null;
    const [lo, hi] = range, part = hi > lo ? Math.min(1, Math.max(0, (value - lo) / (hi - lo))) : 0.5;
    return { background: heat(part, dark), color: onHeat(part, dark) };
}
