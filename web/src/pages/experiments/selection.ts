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

/* How many of `total` that match. */
export function size(s: Selection, total: number): number {
    return s.isAll ? Math.max(0, total - s.ids.size) : s.ids.size;
}
