/* Columns whose numbers are coloured by the lowest and the highest of all that match, not only of those in sight: light is good. */
import { asked } from "../../state/filter_tree";
import type { ListView } from "../../state/list_address";
import { heat, onHeat } from "../../charts/palette";
import type { Shown } from "./columns";
import { formsetOf } from "./data";
import { search, sortText } from "./search";

export interface Range { lo: number; hi: number; /* Whether the lower are the better ones, where a row's own search does not say so. */ isTurned: boolean }
/* By the column's key in the sort. */
export type Ranges = ReadonlyMap<string, Range>;

const MOST = 1.7e308; // infinities and what is no number are not coloured

/* Those that are shown and may be coloured. */
export const heatable = (columns: readonly Shown[]): Shown[] => columns.filter((c) => c.kind.heat);

async function askEnd(v: ListView, column: Shown, isHighest: boolean, signal: AbortSignal): Promise<{ value: number; isTurned: boolean } | null> {
    const name = sortText([column.sort]).replace(/=asc$/, ""), filter = formsetOf(v, asked(name, ">=", -MOST), asked(name, "<=", MOST));
    const { rows: [row] } = await search(filter, sortText([isHighest ? `-${column.sort}` : column.sort]), 0, 1, signal), value = row && column.kind.heat!(row);
    return row && typeof value === "number" ? { value, isTurned: column.kind.isTurned?.(row) ?? false } : null;
}

export async function askRanges(v: ListView, columns: readonly Shown[], signal: AbortSignal): Promise<Ranges> {
    const ranges = new Map<string, Range>();
    for (const c of columns) {
        const [lo, hi] = [await askEnd(v, c, false, signal), await askEnd(v, c, true, signal)];
        if (lo && hi) ranges.set(c.sort, { lo: lo.value, hi: hi.value, isTurned: lo.isTurned || hi.isTurned });
    }
    return ranges;
}

/* null: no colour. A value beyond what was asked a while ago has the end's. `isTurned`: as the row's own search has it. */
export function heatStyle(range: Range | undefined, value: unknown, dark: boolean, isTurned = range?.isTurned): { background: string; color: string } | null {
    if (!range || typeof value !== "number" || !Number.isFinite(value)) return null;
    const { lo, hi } = range, height = hi > lo ? Math.min(1, Math.max(0, (value - lo) / (hi - lo))) : 0.5, part = isTurned ? 1 - height : height;
    return { background: heat(part, dark), color: onHeat(part, dark) };
}
