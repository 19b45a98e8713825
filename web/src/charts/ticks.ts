/* Where an axis has its marks. Steps are 1, 2 or 5 of a power of ten; of times: what a clock or a calendar shows. */
import type { Scale } from "./scales";

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME_STEPS = [
    1, 2, 5, 10, 20, 50, 100, 200, 500, SECOND, 2 * SECOND, 5 * SECOND, 10 * SECOND, 15 * SECOND, 30 * SECOND,
    MINUTE, 2 * MINUTE, 5 * MINUTE, 10 * MINUTE, 15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR,
    12 * HOUR, DAY, 2 * DAY, 7 * DAY, 14 * DAY, 30 * DAY, 90 * DAY, 365 * DAY,
];

/* The smallest of 1, 2, 5 times a power of ten that is at least `least`. */
export function niceStep(least: number): number {
    if (!(least > 0) || !Number.isFinite(least)) return 1;
    const power = Math.pow(10, Math.floor(Math.log10(least)));
    for (const m of [1, 2, 5]) if (m * power >= least * (1 - 1e-9)) return m * power;
    return 10 * power;
}

function linear(lo: number, hi: number, most: number): number[] {
    const step = niceStep((hi - lo) / Math.max(1, most));
    const first = Math.ceil(lo / step - 1e-9);
    const last = Math.floor(hi / step + 1e-9);
    const out: number[] = [];
    // The division mends what adding 0.1 again and again would spoil; + 0 makes -0 a 0.
    for (let i = first; i <= last && out.length <= most + 1; i++) out.push((step < 1 ? i / Math.round(1 / step) : i * step) + 0);
    return out;
}

/* Of few powers of ten also 2 and 5 times each. */
function between(out: number[], first: number, last: number, lo: number, hi: number): number[] {
    for (let e = first; e <= last; e++) for (const m of [2, 5]) if (Number(`${m}e${e}`) >= lo && Number(`${m}e${e}`) <= hi) out.push(Number(`${m}e${e}`));
    return out.sort((a, b) => a - b);
}

function logarithmic(lo: number, hi: number, most: number): number[] {
    const first = Math.ceil(Math.log10(lo) - 1e-9);
    const last = Math.floor(Math.log10(hi) + 1e-9);
    if (last - first < 1) {
        const some = between(last === first ? [Number(`1e${first}`)] : [], first - 1, last, lo, hi);
        return some.length > 2 ? some : linear(lo, hi, most).filter((v) => v > 0);
    }
    const stride = Math.max(1, Math.ceil((last - first + 1) / most));
    const out: number[] = [];
    for (let e = first; e <= last; e += stride) out.push(Number(`1e${e}`));
    return last - first < 3 ? between(out, first - 1, last, lo, hi) : out;
}

/* `zone` is minutes to add to UTC, so that days begin where the reader's do. */
function times(lo: number, hi: number, most: number, zone: number): number[] {
    const least = (hi - lo) / Math.max(1, most);
    const step = TIME_STEPS.find((s) => s >= least) ?? niceStep(least / (365 * DAY)) * 365 * DAY;
    const shift = zone * MINUTE;
    const out: number[] = [];
    for (let t = Math.ceil((lo + shift) / step) * step; t - shift <= hi && out.length <= most + 1; t += step) out.push(t - shift);
    return out;
}

export function ticks(s: Scale, most: number, zone = 0): number[] {
    switch (s.kind) {
        case "log": return logarithmic(s.lo, s.hi, most);
        case "time": return times(s.lo, s.hi, most, zone);
        case "category": return linear(Math.ceil(s.lo), Math.floor(s.hi), most).filter(Number.isInteger);
        default: return linear(s.lo, s.hi, most);
    }
}
