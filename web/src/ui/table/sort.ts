/* The order of rows by several columns, where all of them are on the page: the page sorts. */

/* "lr" is the least first, "-lr" the greatest. */
export type SortKey = string;
const SORTS_MOST = 5; // as the address has them

/* Numbers before texts; what is not there last, either way. */
export function compare(a: number | string, b: number | string, down: boolean): number {
    const [noA, noB] = [a === "" || Number.isNaN(a), b === "" || Number.isNaN(b)];
    if (noA || noB) return Number(noA) - Number(noB);
    const order = typeof a === "number" && typeof b === "number" ? a - b : typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
    return down ? -order : order;
}

/* The column's direction and place among the keys, from 0; null: not sorted by. */
export function placeOf(sort: readonly SortKey[], id: string): { at: number; isDown: boolean } | null {
    const at = sort.findIndex((k) => k === id || k === `-${id}`);
    return at < 0 ? null : { at, isDown: sort[at] === `-${id}` };
}

/* After a press on a column's head: up, down, not at all. `isMore`: the other keys stay. */
export function pressed(sort: readonly SortKey[], id: string, isMore: boolean): SortKey[] {
    const is = placeOf(sort, id), isAlone = is !== null && sort.length === 1;
    if (!isMore) return !isAlone ? [id] : is.isDown ? [] : [`-${id}`];
    if (!is) return [...sort, id].slice(-SORTS_MOST);
    return is.isDown ? sort.filter((_, i) => i !== is.at) : sort.map((k, i) => (i === is.at ? `-${id}` : k));
}

/* By the first key, where that is equal by the next, and at last by id. Keys of no column count for nothing. */
export function sorted<T extends { id: number }>(rows: readonly T[], columns: readonly { id: string; of: (row: T) => number | string }[], sort: readonly SortKey[]): T[] {
    const by = sort.flatMap((k) => {
        const isDown = k.startsWith("-"), c = columns.find((o) => o.id === k.replace(/^-/, ""));
        return c ? [{ of: c.of, isDown }] : [];
    });
    const order = (a: T, b: T): number => {
        for (const { of, isDown } of by) {
            const d = compare(of(a), of(b), isDown);
            if (d) return d;
        }
        return a.id - b.id;
    };
    return [...rows].sort(order);
}
