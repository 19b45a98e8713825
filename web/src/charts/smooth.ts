/* A moving mean whose weights fall with the distance in x, so that how densely a trial reports changes nothing. */
import type { Points } from "./sample";

/*
 * `weight` in [0, 1): how much of the mean is kept over 1/1000 of the range of x; 0 gives the points back. The first
 * point is not favoured: the sum of weights is divided out. A y that is not finite is kept and not counted.
 */
export function smooth(p: Points, weight: number): Points {
    if (!(weight > 0) || p.x.length < 3) return p;
    const w = Math.min(weight, 0.999);
    const span = p.x[p.x.length - 1]! - p.x[0]!;
    const unit = span > 0 ? span / Math.min(1000, p.x.length - 1) : 1;
    const y: number[] = [];
    let sum = 0;
    let weights = 0;
    let before = p.x[0]!;
    for (let i = 0; i < p.x.length; i++) {
        if (!Number.isFinite(p.y[i]!)) {
            y.push(p.y[i]!);
            continue;
        }
        const keep = Math.pow(w, Math.max(0, p.x[i]! - before) / unit);
        sum = sum * keep + p.y[i]! * (1 - w);
        weights = weights * keep + (1 - w);
        before = p.x[i]!;
        y.push(sum / weights);
    }
    return { x: p.x, y };
}
