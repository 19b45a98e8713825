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
    const n = values.length, mean = values.reduce((a, b) => a + b, 0) / n; // of none 0 / 0
    const deviation = Math.sqrt(values.reduce((s, v) => s + (v - mean) ** 2, 0) / (n - 1));
    const end = (of: (a: number, b: number) => number): number => values.reduce((a, b) => of(a, b), values[0] ?? NaN); // more than a call takes arguments
    return { n, mean, deviation: n > 1 ? deviation : NaN, lo: end(Math.min), hi: end(Math.max) };
}
