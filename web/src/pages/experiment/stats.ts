/* Any metric as one number of a trial: "validation.loss.min", of what the trial's summary says of it. */
import type { Value } from "../../charts/axes";
import type { Row } from "../../charts/parallel";
import { statOf } from "../experiments/search";
import { metricId, type Metric, type Trial } from "./data";

export const STATS = ["last", "min", "max", "mean"] as const;

export function statNames(metrics: Metric[]): string[] {
    return metrics.flatMap((m) => STATS.map((s) => `${metricId(m)}.${s}`));
}

/* The rows with these as values, too; what is no finite number is none. */
export function withStats(rows: Row[], trials: Trial[], names: string[]): Row[] {
    if (!names.length) return rows;
    const of = new Map(trials.map((t) => [t.id, t.summaryMetrics]));
    const stat = (id: number, name: string): Value => {
        const v = statOf(of.get(id), name);
        return typeof v === "number" && Number.isFinite(v) ? v : null;
    };
    return rows.map((r) => ({ id: r.id, values: Object.assign(Object.create(null) as Row["values"], r.values, Object.fromEntries(names.map((n) => [n, stat(r.id, n)]))) }));
}
