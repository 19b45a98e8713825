/* Points to what a screen can show: the lowest and the highest of each column of pixels, so that a spike never vanishes. */

export interface Points {
    x: number[];
    y: number[];
}

/* Of points in order of x, those of [lo, hi] and one beyond each end, so that lines run on to the frame. */
export function visible(p: Points, lo: number, hi: number): [number, number] {
    return [Math.max(0, firstAt(p.x, lo) - 1), Math.min(p.x.length, firstAt(p.x, hi, true) + 1)];
}

/* Index of the first x that is >= value (or > value). */
export function firstAt(x: number[], value: number, beyond = false): number {
    let a = 0;
    let b = x.length;
    while (a < b) {
        const m = (a + b) >> 1;
        if (beyond ? x[m]! <= value : x[m]! < value) a = m + 1;
        else b = m;
    }
    return a;
}

/* One bucket's points in their order: first, lowest, highest, last, each once. */
function keep(out: Points, p: Points, first: number, low: number, high: number, last: number): void {
    let before = -1;
    for (const i of [first, Math.min(low, high), Math.max(low, high), last])
        if (i > before) {
            out.x.push(p.x[i]!);
            out.y.push(p.y[i]!);
            before = i;
        }
}

/* Those from `from` until `to` that have a y; all of them are what there is already. */
function finite(p: Points, from: number, to: number): Points {
    let all = true;
    for (let i = from; i < to && all; i++) all = Number.isFinite(p.y[i]!);
    if (all) return from === 0 && to === p.x.length ? p : { x: p.x.slice(from, to), y: p.y.slice(from, to) };
    const out: Points = { x: [], y: [] };
    for (let i = from; i < to; i++) {
        if (!Number.isFinite(p.y[i]!)) continue;
        out.x.push(p.x[i]!);
        out.y.push(p.y[i]!);
    }
    return out;
}

/*
 * At most four points of each of `columns` equal parts of [lo, hi] (first, lowest, highest, last), in order.
 * Points must be in order of x. A y that is not finite counts for nothing; fewer points come back as they are.
 */
export function downsample(p: Points, lo: number, hi: number, columns: number): Points {
    const [from, to] = visible(p, lo, hi);
    if (to - from <= 4 * columns || !(hi > lo)) return finite(p, from, to);
    const out: Points = { x: [], y: [] };
    let column = NaN;
    let [first, low, high, last] = [-1, -1, -1, -1];
    for (let i = from; i < to; i++) {
        if (!Number.isFinite(p.y[i]!)) continue;
        const c = Math.floor(((p.x[i]! - lo) / (hi - lo)) * columns);
        if (c !== column) {
            if (first >= 0) keep(out, p, first, low, high, last);
            column = c;
            first = low = high = last = i;
        }
        if (p.y[i]! < p.y[low]!) low = i;
        if (p.y[i]! > p.y[high]!) high = i;
        last = i;
    }
    if (first >= 0) keep(out, p, first, low, high, last);
    return out;
}

/* Index of the point nearest to x; -1 where there is none. */
export function nearest(x: number[], value: number): number {
    const i = firstAt(x, value);
    if (i === 0) return x.length ? 0 : -1;
    return i < x.length && x[i]! - value < value - x[i - 1]! ? i : i - 1;
}
