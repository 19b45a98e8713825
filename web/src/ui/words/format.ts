/* Numbers and sizes as people read them; the whole value is for the tooltip. */

export const DIGITS = 4;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

/* Four digits, and no more zeros than it takes: 0.9312, 1e-4, 12345, -3.2e-7. What is no number: "NaN", "Infinity". */
export function number(v: number | null | undefined, digits = DIGITS): string {
    if (v === null || v === undefined) return "";
    if (!Number.isFinite(v)) return String(v);
    if (v === 0) return "0";
    const size = Math.abs(v);
    if (Number.isInteger(v) && size < 1e6) return String(v);
    if (size >= 1e6 || size < 1e-3) return scientific(v, digits);
    return String(Number(v.toPrecision(size >= 1e4 ? Math.max(6, digits) : digits)));
}

const MOST_DIGITS = 15, AS_GOOD = 20; // part of a step by which a text may be off

/* Of marks of one axis: as many digits as tell each from the next, and where it is. */
export function numbers(all: readonly number[]): string[] {
    const sorted = [...all].sort((a, b) => a - b), step = Math.min(...sorted.slice(1).map((v, i) => v - sorted[i]!).filter((d) => d > 0));
    for (let digits = DIGITS; digits <= MOST_DIGITS; digits++) {
        const texts = all.map((v) => (digits > DIGITS && Number.isSafeInteger(v) ? String(v) : number(v, digits)));
        if (all.every((v, i) => !(Math.abs(Number(texts[i]) - v) > step / AS_GOOD))) return texts;
    }
    return all.map(String);
}

function scientific(v: number, digits: number): string {
    const [mantissa, power] = v.toExponential(digits - 1).split("e");
    return `${Number(mantissa)}e${Number(power)}`;
}

/* Any value of a hyperparameter: numbers in four digits, texts as they are, the rest as JSON. */
export function value(v: unknown): string {
    if (typeof v === "number") return number(v);
    if (typeof v === "string") return v;
    return v === null || v === undefined ? "" : JSON.stringify(v);
}

/* Bytes; the API sends large ones as texts. "" for what is no size. */
export function bytes(v: number | string | null | undefined): string {
    let n = typeof v === "string" ? Number(v || NaN) : (v ?? NaN);
    if (!Number.isFinite(n) || n < 0) return "";
    let unit = 0;
    while (n >= 1024 && unit < UNITS.length - 1) {
        n /= 1024;
        unit++;
    }
    return `${unit ? Number(n.toPrecision(3)) : n} ${UNITS[unit]}`;
}

export function percent(part: number | null | undefined): string {
    return part === null || part === undefined || !Number.isFinite(part) ? "" : `${Math.floor(part * 100 + 1e-9)} %`;
}

/* "1 trial", "3 trials": `many` where the plural is not the word with an s. */
export function count(n: number, one: string, many = one + "s"): string {
    return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}
