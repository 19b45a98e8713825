/* Curves taken together: what differs between them becomes a mean and a deviation. */
import type { Band } from "../draw";
import type { Points } from "../sample";
import { spreadOf } from "../spread";

const POINTS_MOST = 1500;

export interface Collapsed { points: Points; band: Band }
interface Line { x: number[] | Float64Array; y: number[] | Float64Array }

/* On the line between the points at both sides, of which i is the first that is not before x; NaN beyond the ends. */
function at(p: Line, x: number, i: number): number {
    if (i < p.x.length && p.x[i] === x) return p.y[i]!;
    if (i === 0 || i >= p.x.length) return NaN;
    const share = (x - p.x[i - 1]!) / (p.x[i]! - p.x[i - 1]!);
    return p.y[i - 1]! + share * (p.y[i]! - p.y[i - 1]!);
}

/* Every x of the curves once, in order; more than have room are too many for a set to be quick. */
function placesOf(curves: Line[]): Float64Array {
    const all = new Float64Array(curves.reduce((n, c) => n + c.x.length, 0));
    let n = 0;
    for (const c of curves) for (const x of c.x) if (!Number.isNaN(x)) all[n++] = x;
    return all.subarray(0, n).sort().filter((x, i, sorted) => i === 0 || x !== sorted[i - 1]);
}

/* The mean of several curves, and one deviation to both sides of it: at each x over those that have got there. */
export function collapsed(curves: Line[]): Collapsed {
    const xs = placesOf(curves), every = Math.max(1, Math.ceil(xs.length / POINTS_MOST)), next = new Uint32Array(curves.length); // where each curve has come to
    const points: Points = { x: [], y: [] }, band: Band = { x: points.x, lo: [], hi: [] };
    xs.forEach((x, i) => {
        if (i % every && i < xs.length - 1) return;
        const values: number[] = [];
        curves.forEach((c, k) => {
            while (c.x[next[k]!]! < x) next[k]!++;
            const y = at(c, x, next[k]!);
            if (Number.isFinite(y)) values.push(y);
        });
        const s = spreadOf(values), d = Number.isNaN(s.deviation) ? 0 : s.deviation;
        if (!s.n) return;
        points.x.push(x);
        points.y.push(s.mean);
        band.lo.push(s.mean - d);
        band.hi.push(s.mean + d);
    });
    return { points, band };
}

/* All curves of all groups in a row, which goes to a worker at once. */
export interface Packed {
    x: Float64Array;
    y: Float64Array;
    /* Of each curve where its points end. */
    ends: Uint32Array;
    /* Of each group how many curves it has. */
    curves: Uint32Array;
}

export function packed(groups: readonly (readonly Points[])[]): Packed {
    const all = groups.flat(), n = all.reduce((sum, c) => sum + c.x.length, 0), ends = new Uint32Array(all.length);
    const x = new Float64Array(n), y = new Float64Array(n);
    let end = 0;
    all.forEach((c, k) => {
        x.set(c.x, end);
        y.set(c.y, end);
        ends[k] = end += c.x.length;
    });
    return { x, y, ends, curves: Uint32Array.from(groups, (g) => g.length) };
}

/* One curve a group, in their order. */
export function collapsedAll({ x, y, ends, curves }: Packed): Collapsed[] {
    let k = 0;
    return [...curves].map((n) => collapsed(Array.from({ length: n }, () => {
        const from = k ? ends[k - 1]! : 0, to = ends[k++]!;
        return { x: x.subarray(from, to), y: y.subarray(from, to) };
    })));
}
