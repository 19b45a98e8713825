/* Several numbers as one: their mean, and how far they lie apart. */

export interface Spread {
    /* Those that have a value. */
    n: number;
    /* NaN: none has one. */
    mean: number;
    /* Of the sample; NaN of fewer than two. */
    deviation: number;
    lo: number;
    hi: number;
}

export function spreadOf(values: number[]): Spread {
    const n = values.length;
    let sum = 0, squares = 0, lo = values[0] ?? NaN, hi = lo; // loops: there may be more than a call takes arguments, and often
    for (const v of values) [sum, lo, hi] = [sum + v, Math.min(lo, v), Math.max(hi, v)];
    const mean = sum / n; // of none 0 / 0
    for (const v of values) squares += (v - mean) ** 2;
    return { n, mean, deviation: n > 1 ? Math.sqrt(squares / (n - 1)) : NaN, lo, hi };
}
