/* Trials that share some hyperparameters, taken together: what differs within, as seeds do, becomes a mean and a deviation. */
import { text, type Value } from "../../charts/axes";
import type { Band } from "../../charts/draw";
import type { Row } from "../../charts/parallel";
import type { Points } from "../../charts/sample";
import { spreadOf, type Spread } from "../../charts/spread";

export interface TrialGroup {
    ids: number[];
    /* One a name. */
    values: (Value | undefined)[];
    spread: Spread;
}

const POINTS_MOST = 1500;

/* In the order of their means, the best first; those without one last. */
export function groupsOf(rows: Row[], by: readonly string[], metric: string, smallerIsBetter: boolean): TrialGroup[] {
    const all = new Map<string, Row[]>();
    for (const r of rows) {
        const key = JSON.stringify(by.map((n) => [typeof r.values[n], text(r.values[n])]));
        const same = all.get(key);
        if (same) same.push(r);
        else all.set(key, [r]);
    }
    const groups = [...all.values()].map((g): TrialGroup => ({
        ids: g.map((r) => r.id), values: by.map((n) => g[0]!.values[n]),
        spread: spreadOf(g.map((r) => r.values[metric]).filter((v): v is number => typeof v === "number" && Number.isFinite(v))),
    }));
    const least = (g: TrialGroup) => (Number.isNaN(g.spread.mean) ? Infinity : (smallerIsBetter ? 1 : -1) * g.spread.mean);
    return groups.sort((a, b) => (least(a) === least(b) ? a.ids[0]! - b.ids[0]! : least(a) < least(b) ? -1 : 1));
}

/* On the line between the points at both sides, of which i is the first that is not before x; NaN beyond the ends. */
function at(p: Points, x: number, i: number): number {
    if (i < p.x.length && p.x[i] === x) return p.y[i]!;
    if (i === 0 || i >= p.x.length) return NaN;
    const share = (x - p.x[i - 1]!) / (p.x[i]! - p.x[i - 1]!);
    return p.y[i - 1]! + share * (p.y[i]! - p.y[i - 1]!);
}

/* Every x of the curves once, in order; more than have room are too many for a set to be quick. */
function placesOf(curves: Points[]): Float64Array {
    const all = new Float64Array(curves.reduce((n, c) => n + c.x.length, 0));
    let n = 0;
    for (const c of curves) for (const x of c.x) if (!Number.isNaN(x)) all[n++] = x;
    return all.subarray(0, n).sort().filter((x, i, sorted) => i === 0 || x !== sorted[i - 1]);
}

/* The mean of several curves, and one deviation to both sides of it: at each x over those that have got there. */
export function collapsed(curves: Points[]): { points: Points; band: Band } {
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

/* drawn: of how many of its trials a curve is the mean. */
export function groupName(by: readonly string[], g: TrialGroup, drawn: number = g.ids.length): string {
    return `${by.map((n, i) => `${n} ${text(g.values[i])}`).join(", ")} (n = ${drawn < g.ids.length ? `${drawn} of ` : ""}${g.ids.length})`;
}
