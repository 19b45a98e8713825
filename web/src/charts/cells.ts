/* Trials in the cells between two axes: each cell has the mean of one of their numbers. */
import { DIGITS, number } from "../ui/words/format";
import { axisScale, position, text, type Axis } from "./axes";
import type { Row } from "./parallel";
import { toValue } from "./scales";
import { spreadOf, type Spread } from "./spread";

/* A part of an axis: from lo to hi, both included where it is one value or the last. */
export interface Bin { label: string; lo: number; hi: number }

export interface Cell {
    x: number;
    y: number;
    ids: number[];
    spread: Spread;
}

const VALUES_MOST = 12; // where they come again, as in a grid search, each value is a part of its own
const PARTS = 8;
const DIGITS_MOST = 17; // no two numbers are alike in these

/* In as few digits as tell them apart. */
function told(values: number[], digits: number): string[] {
    const all = values.map((v) => number(v, digits));
    return digits >= DIGITS_MOST || new Set(all).size === new Set(values).size ? all : told(values, digits + 1);
}

/* Equal parts of the axis as it is drawn: of a logarithm equal factors. */
function parts(a: Axis): Bin[] {
    const s = axisScale(a, 0, PARTS), edge = (i: number) => (i === 0 ? s.lo : i === PARTS ? s.hi : toValue(s, i));
    const edges = Array.from({ length: PARTS + 1 }, (_, i) => edge(i)), names = told(edges, 2);
    return Array.from({ length: PARTS }, (_, i) => ({ label: `${names[i]!} … ${names[i + 1]!}`, lo: edges[i]!, hi: edges[i + 1]! }));
}

export function binsOf(a: Axis, rows: Row[]): Bin[] {
    if (a.kind === "category") return a.categories.map((c, i) => ({ label: text(c), lo: i, hi: i }));
    const all = rows.map((r) => position(a, r.values[a.name])).filter(Number.isFinite), values = [...new Set(all)].sort((p, q) => p - q);
    const areFew = values.length === 1 || (values.length <= VALUES_MOST && values.length < all.length);
    const names = told(values, DIGITS);
    return !areFew && all.length ? parts(a) : values.map((v, i) => ({ label: names[i]!, lo: v, hi: v }));
}

/* -1: in none. */
export function binAt(bins: Bin[], at: number): number {
    return bins.findIndex((b, i) => at >= b.lo && (at < b.hi || at === b.lo || (i === bins.length - 1 && at <= b.hi)));
}

/* Those that hold a trial, row by row from below. A trial without the number counts for its cell's ids only. */
export function cellsOf(rows: Row[], [x, xs]: [Axis, Bin[]], [y, ys]: [Axis, Bin[]], by: string): Cell[] {
    const held = new Map<number, Row[]>();
    for (const r of rows) {
        const [i, k] = [binAt(xs, position(x, r.values[x.name])), binAt(ys, position(y, r.values[y.name]))];
        if (i >= 0 && k >= 0) held.set(k * xs.length + i, [...(held.get(k * xs.length + i) ?? []), r]);
    }
    return [...held].sort((a, b) => a[0] - b[0]).map(([at, all]) => ({
        x: at % xs.length, y: Math.floor(at / xs.length), ids: all.map((r) => r.id),
        spread: spreadOf(all.map((r) => r.values[by]).filter((v): v is number => typeof v === "number" && Number.isFinite(v))),
    }));
}
