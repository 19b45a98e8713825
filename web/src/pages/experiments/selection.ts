/* Which experiments are ticked: some by their ids, or all that match the filter on screen but for some. */
export interface Selection {
    isAll: boolean;
    /* The ticked ones, or with isAll those that are not. */
    ids: ReadonlySet<number>;
}

export const NONE: Selection = { isAll: false, ids: new Set() };
export const ALL: Selection = { isAll: true, ids: new Set() };

export function isTicked(s: Selection, id: number): boolean {
    return s.isAll !== s.ids.has(id);
}

export function tick(s: Selection, ids: number[], isOn: boolean): Selection {
    const next = new Set(s.ids);
    for (const id of ids) {
        if (isOn !== s.isAll) next.add(id);
        else next.delete(id);
    }
    return { isAll: s.isAll, ids: next };
}

/* The ids from one row to another, whichever is first; null: one of them is not there. */
export function between(rows: readonly { id: number }[], a: number, b: number): number[] | null {
    const [i, j] = [a, b].map((id) => rows.findIndex((r) => r.id === id)).sort((x, y) => x - y) as [number, number];
    return i < 0 ? null : rows.slice(i, j + 1).map((r) => r.id);
}

/* How many of `total` that match. */
export function size(s: Selection, total: number): number {
    return s.isAll ? Math.max(0, total - s.ids.size) : s.ids.size;
}
