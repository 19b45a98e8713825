/* Values to pixels and back. A scale is a plain value: charts share them, tests need no canvas. */

export type ScaleKind = "linear" | "log" | "time" | "category";

export interface Scale {
    kind: ScaleKind;
    /* What the two ends stand for; of categories: first and last index. */
    lo: number;
    hi: number;
    /* Pixels of lo and hi; from may be the larger one (a y axis). */
    from: number;
    to: number;
}

const FLAT = 0.05; // of the value: half the room that a domain of one value gets

/* Ends that differ, so that one value lies in the middle and nothing divides by 0. */
function widen(kind: ScaleKind, lo: number, hi: number): [number, number] {
    if (lo < hi) return [lo, hi];
    if (kind === "log") return [lo / 2, lo * 2];
    if (kind === "category") return [lo - 0.5, lo + 0.5];
    const room = Math.abs(lo) * FLAT || 0.5;
    return [lo - room, lo + room];
}

/* A scale over [lo, hi]; a log scale of anything below or at 0 is linear, for there is no log of it. */
export function scale(kind: ScaleKind, lo: number, hi: number, from: number, to: number): Scale {
    if (!Number.isFinite(lo) || !Number.isFinite(hi)) [lo, hi] = kind === "log" ? [1, 10] : [0, 1];
    if (lo > hi) [lo, hi] = [hi, lo];
    if (kind === "log" && lo <= 0) kind = "linear";
    [lo, hi] = widen(kind, lo, hi);
    return { kind, lo, hi, from, to };
}

/* Where a value lies: 0 at lo, 1 at hi; NaN where the scale has no place for it. */
export function share(s: Scale, value: number): number {
    if (s.kind !== "log") return (value - s.lo) / (s.hi - s.lo);
    return value > 0 ? Math.log(value / s.lo) / Math.log(s.hi / s.lo) : NaN;
}

export function toPixel(s: Scale, value: number): number {
    return s.from + share(s, value) * (s.to - s.from);
}

/* toPixel() for many values: what is the same for all of them is worked out once. */
export function pixels({ kind, lo, hi, from, to }: Scale): (value: number) => number {
    if (kind !== "log") {
        const by = (to - from) / (hi - lo);
        return (v) => from + (v - lo) * by;
    }
    const by = (to - from) / Math.log(hi / lo);
    return (v) => (v > 0 ? from + Math.log(v / lo) * by : NaN);
}

export function toValue(s: Scale, pixel: number): number {
    const part = (pixel - s.from) / (s.to - s.from);
    return s.kind === "log" ? s.lo * Math.pow(s.hi / s.lo, part) : s.lo + part * (s.hi - s.lo);
}

/* The least and the greatest finite number; of a log axis only those above 0. [NaN, NaN] where there is none. */
export function extent(values: Iterable<number>, kind: ScaleKind = "linear"): [number, number] {
    let lo = Infinity;
    let hi = -Infinity;
    for (const v of values) {
        if (!Number.isFinite(v) || (kind === "log" && v <= 0)) continue;
        if (v < lo) lo = v;
        if (v > hi) hi = v;
    }
    return lo <= hi ? [lo, hi] : [NaN, NaN];
}

/* Ends with a little room, so that a curve does not lie on the frame. */
export function padded(kind: ScaleKind, lo: number, hi: number, part = FLAT): [number, number] {
    [lo, hi] = widen(kind, lo, hi);
    if (kind === "log") {
        const f = Math.pow(hi / lo, part);
        return [lo / f, hi * f];
    }
    return [lo - (hi - lo) * part, hi + (hi - lo) * part];
}

/* A part of an axis that is seen; it moves along it, and gets narrower or wider: on a log axis by shares of its logarithm. */
export type Range = [number, number];

const DIGITS = 6;
const scaleOf = (r: Range, isLog: boolean): Scale => scale(isLog ? "log" : "linear", r[0], r[1], 0, 1);
const rounded = (lo: number, hi: number): Range => [Number(lo.toPrecision(DIGITS)), Number(hi.toPrecision(DIGITS))];

/* By a share of its width; 1: to what lies beside it. */
export function panned(r: Range, share: number, isLog: boolean): Range {
    const s = scaleOf(r, isLog);
    return rounded(toValue(s, share), toValue(s, 1 + share));
}

/* `by` times as narrow around `at`, a share of it that stays where it is. */
export function narrowed(r: Range, by: number, at: number, isLog: boolean): Range {
    const s = scaleOf(r, isLog), lo = at - at / by;
    return rounded(toValue(s, lo), toValue(s, lo + 1 / by));
}

/* Two ends that differ in six digits. */
export function isRange([lo, hi]: Range): boolean {
    return Number.isFinite(lo) && Number.isFinite(hi) && lo < hi;
}
