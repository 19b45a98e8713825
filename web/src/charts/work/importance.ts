/* How much a hyperparameter has to do with the metric: Spearman's rank correlation, which no scale of either changes. */
import { position, type Axis, type Value } from "../axes";

export interface Importance {
    name: string;
    /* -1..1; of categories the root of the share of the ranks' variance that they explain, which has no sign. NaN: cannot be told. */
    weight: number;
    isSigned: boolean;
    /* Trials that have both. */
    n: number;
}

/* Ranks from 1; equal values share the mean of theirs. */
export function ranks(values: number[]): number[] {
    const order = values.map((v, i) => [v, i] as const).sort((a, b) => a[0] - b[0]);
    const out = new Array<number>(values.length);
    for (let i = 0; i < order.length;) {
        let j = i;
        while (j < order.length && order[j]![0] === order[i]![0]) j++;
        for (let k = i; k < j; k++) out[order[k]![1]] = (i + 1 + j) / 2;
        i = j;
    }
    return out;
}

const mean = (v: number[]): number => v.reduce((a, b) => a + b, 0) / v.length;

function correlation(a: number[], b: number[]): number {
    const [ma, mb] = [mean(a), mean(b)];
    let ab = 0, aa = 0, bb = 0;
    a.forEach((x, i) => {
        ab += (x - ma) * (b[i]! - mb);
        aa += (x - ma) ** 2;
        bb += (b[i]! - mb) ** 2;
    });
    return aa > 0 && bb > 0 ? ab / Math.sqrt(aa * bb) : NaN;
}

/* Eta: what the means of the groups have of the variance of all. */
function explained(groups: number[], values: number[]): number {
    const all = mean(values), by = new Map<number, number[]>();
    groups.forEach((g, i) => {
        const same = by.get(g);
        if (same) same.push(values[i]!);
        else by.set(g, [values[i]!]);
    });
    const total = values.reduce((s, v) => s + (v - all) ** 2, 0);
    if (by.size < 2 || by.size === values.length || !(total > 0)) return NaN;
    return Math.sqrt([...by.values()].reduce((s, g) => s + g.length * (mean(g) - all) ** 2, 0) / total);
}

/* What a worker weighs: each hyperparameter as numbers of its axis, one a trial; NaN: it has none. */
export interface Weighable { metric: Float64Array; axes: { name: string; isSigned: boolean; at: Float64Array }[] }

export function weighable(axes: Axis[], rows: Record<string, Value>[], metric: string): Weighable {
    const of = (v: Value | undefined): number => (typeof v === "number" && Number.isFinite(v) ? v : NaN);
    return { metric: Float64Array.from(rows, (r) => of(r[metric])),
        axes: axes.map((a) => ({ name: a.name, isSigned: a.kind !== "category", at: Float64Array.from(rows, (r) => position(a, r[a.name])) })) };
}

/* One a hyperparameter, in their order. */
export function weighed({ metric, axes }: Weighable): Importance[] {
    return axes.map(({ name, isSigned, at }) => {
        const both = [...at.keys()].filter((i) => Number.isFinite(at[i]!) && Number.isFinite(metric[i]!)), n = both.length;
        if (n < 3) return { name, weight: NaN, isSigned, n };
        const values = both.map((i) => at[i]!), metrics = ranks(both.map((i) => metric[i]!));
        return { name, weight: isSigned ? correlation(ranks(values), metrics) : explained(values, metrics), isSigned, n };
    });
}
