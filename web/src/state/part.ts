/* Lists of which only the first are asked for, until somebody wants all of them: that is in the address. */
import { path, query } from "./router";

const FIRST = 500, ALL = -1; // as the master takes it

export interface Part<T> { rows: T[]; total: number }

export const limitOf = (isWhole: boolean): number => (isWhole ? ALL : FIRST);

export function partOf<T>(rows: T[], pagination: { total?: number } | null | undefined): Part<T> {
    return { rows, total: Math.max(rows.length, pagination?.total ?? 0) };
}

/* Where the master gives no more at once: the first ones, or all of them, a page after the other. */
export async function askPages<T>(isWhole: boolean, ask: (page: { offset: number; limit: number }) => Promise<Part<T>>): Promise<Part<T>> {
    const rows: T[] = [];
    for (;;) {
        const part = await ask({ offset: rows.length, limit: FIRST });
        rows.push(...part.rows);
        if (!isWhole || !part.rows.length || rows.length >= part.total) return partOf(rows, part);
    }
}

/* Whether the address asks for all. */
export const isWhole = (): boolean => query.value.get("all") === "1";

/* The same page with all of its list. */
export function wholeAddress(at = path.value, of = query.value): string {
    const q = new URLSearchParams(of);
    q.set("all", "1");
    return `${at}?${q}`;
}
