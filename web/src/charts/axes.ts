/* Hyperparameters as axes: which ones vary, what kind each is, where a trial's value lies on it. */
import { extent, scale, toPixel, type Scale } from "./scales";

export type Value = number | string | boolean | null;

export interface Axis {
    name: string;
    kind: "linear" | "log" | "category";
    /* Ends; of categories the first and last index. */
    lo: number;
    hi: number;
    /* Texts of a category, in their order. */
    categories: string[];
}

/* A tree of hyperparameters as names with dots. Lists and what is no plain value become their JSON. */
export function flat(hparams: unknown, prefix = "", out: Record<string, Value> = Object.create(null)): Record<string, Value> {
    if (typeof hparams !== "object" || hparams === null) return out;
    for (const [key, v] of Object.entries(hparams)) {
        const name = prefix + key;
        if (typeof v === "object" && v !== null && !Array.isArray(v)) flat(v, name + ".", out);
        else out[name] = typeof v === "object" && v !== null ? JSON.stringify(v) : (v as Value);
    }
    return out;
}

/* Names whose value is not the same in all rows; a row that lacks one differs from those that have it. */
export function varying(rows: Record<string, Value>[]): string[] {
    const seen = new Map<string, string>();
    const names: string[] = [];
    for (const row of rows) for (const name of Object.keys(row)) if (!seen.has(name)) seen.set(name, key(row[name]));
    for (const [name, first] of seen) if (rows.some((r) => key(r[name]) !== first)) names.push(name);
    return names.sort();
}

function key(v: Value | undefined): string {
    return v === undefined ? "" : typeof v + JSON.stringify(v);
}

/* How a hyperparameter was declared, as far as it says how its axis goes: `log`, or `categorical` with its values. */
export interface Declared {
    type?: string;
    vals?: Value[];
}

/* The declarations of a configuration by flat name. */
export function declared(hparams: unknown, prefix = "", out: Record<string, Declared> = Object.create(null)): Record<string, Declared> {
    if (typeof hparams !== "object" || hparams === null) return out;
    for (const [name, v] of Object.entries(hparams)) {
        if (typeof v !== "object" || v === null || Array.isArray(v)) continue;
        const d = v as Declared;
        if (typeof d.type === "string") out[prefix + name] = { type: d.type, vals: Array.isArray(d.vals) ? d.vals : undefined };
        else declared(v, prefix + name + ".", out);
    }
    return out;
}

export function text(v: Value | undefined): string {
    return v === undefined || v === null ? "" : String(v);
}

function categories(values: (Value | undefined)[], d: Declared): string[] {
    const seen = new Set((d.vals ?? []).map(text));
    const rest = [...new Set(values.map(text))].filter((t) => !seen.has(t));
    return [...seen, ...rest.sort()];
}

/* The axis of one hyperparameter (or metric) over all rows. */
export function axis(name: string, values: (Value | undefined)[], d: Declared = {}): Axis {
    const has = values.filter((v) => v !== undefined && v !== null);
    if (d.type === "categorical" || !has.length || has.some((v) => typeof v !== "number")) {
        const c = categories(has, d);
        return { name, kind: "category", lo: 0, hi: Math.max(0, c.length - 1), categories: c };
    }
    const numbers = has as number[];
    const [lo, hi] = extent(numbers);
    const log = d.type === "log" && lo > 0;
    return { name, kind: log ? "log" : "linear", lo, hi, categories: [] };
}

/* The number that stands for a value on its axis; NaN where it has none. */
export function position(a: Axis, v: Value | undefined): number {
    if (v === undefined || v === null) return NaN;
    if (a.kind !== "category") return typeof v === "number" ? v : NaN;
    const i = a.categories.indexOf(text(v));
    return i < 0 ? NaN : i;
}

export function axisScale(a: Axis, from: number, to: number): Scale {
    return scale(a.kind, a.lo, a.hi, from, to);
}

export function axisPixel(a: Axis, s: Scale, v: Value | undefined): number {
    return toPixel(s, position(a, v));
}
