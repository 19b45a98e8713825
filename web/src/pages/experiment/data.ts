/* What the experiment's page knows, put together from the API's answers. The shaping is pure; only ask... talks to the master. */
import { call, stream, type Messages } from "../../api/client";
import { axis, declared, flat, type Axis, type Value } from "../../charts/axes";
import type { Row } from "../../charts/parallel";
import type { Points } from "../../charts/sample";
import type { XAxis } from "../../state/address";

export type Experiment = Messages["experiment.v1.Experiment"];
export type Trial = Messages["trial.v1.Trial"];
export type Metric = Messages["MetricIdentifier"];
type Series = Messages["ComparableTrial"];

export const CURVES_MOST = 500; // the best, the running and the chosen; the page says when there are more
const AT_ONCE = 50; // trials that one time-series call takes: the head of a request has room for some 80 parameters
const TRIALS_PAGE = 1000, TRIALS_MOST = 5000;
const POINTS = 1500; // of one curve: two a pixel of most screens

export function metricId(m: Metric): string {
    return `${m.group}.${m.name}`;
}

export async function askTrials(experimentId: string, signal: AbortSignal): Promise<Trial[]> {
    const all: Trial[] = [];
    for (;;) {
        const r = await call("GET /api/v1/experiments/{experimentId}/trials", { path: { experimentId }, signal,
            query: { sortBy: "SORT_BY_ID", orderBy: "ORDER_BY_ASC", offset: all.length, limit: TRIALS_PAGE } });
        all.push(...r.trials);
        if (!r.trials.length || all.length >= Math.min(r.pagination.total, TRIALS_MOST)) return all;
    }
}

/* One look at the names that have been reported. */
export async function askMetrics(ids: number[], signal: AbortSignal): Promise<Metric[]> {
    const found = new Map<string, Metric>();
    for await (const m of stream<Messages["ExpMetricNamesResponse"]>("GET /api/v1/experiments/metrics-stream/metric-names", { query: { ids }, signal }))
        for (const name of m.metricNames ?? []) found.set(metricId(name), name);
    return [...found.values()].sort((a, b) => a.group.localeCompare(b.group) || a.name.localeCompare(b.name));
}

/* The curves of one metric; with a range of batches only what lies in it, and so more finely. */
export async function askSeries(trialIds: number[], metric: string, batches: [number, number] | null, signal: AbortSignal): Promise<Series[]> {
    const parts: number[][] = [];
    for (let i = 0; i < trialIds.length; i += AT_ONCE) parts.push(trialIds.slice(i, i + AT_ONCE));
    const range = batches ? { startBatches: Math.max(0, Math.floor(batches[0])), endBatches: Math.max(1, Math.ceil(batches[1])) } : {};
    const answers = await Promise.all(parts.map((ids) => call("GET /api/v1/trials/time-series",
        { query: { trialIds: ids, metricIds: [metric], maxDatapoints: POINTS, ...range }, signal })));
    return answers.flatMap((a) => a.trials);
}

/* Of more trials than can be drawn: the chosen, the running and the best. */
export function drawn(trials: Trial[], chosen: number[], smallerIsBetter: boolean): Trial[] {
    if (trials.length <= CURVES_MOST) return trials;
    const pick = new Set(chosen), sign = smallerIsBetter ? 1 : -1;
    const order = (t: Trial): number => (pick.has(t.id) ? 0 : t.state === "STATE_RUNNING" ? 1 : 2);
    const by = (t: Trial): number => (typeof t.searcherMetricValue === "number" ? sign * t.searcherMetricValue : Infinity);
    return [...trials].sort((a, b) => order(a) - order(b) || by(a) - by(b) || a.id - b.id).slice(0, CURVES_MOST).sort((a, b) => a.id - b.id);
}

/* What one batch is on an axis that counts them; NaN: the trial does not say how many records it has, or an epoch. */
function ofBatch(s: Series, x: XAxis, config: Experiment["config"]): number {
    const records = Number((s.trial.hparams as Record<string, unknown> | null)?.["global_batch_size"]), perEpoch = Number(config?.["records_per_epoch"]);
    return x === "records" ? records : x === "epochs" ? (perEpoch > 0 ? records / perEpoch : NaN) : 1;
}

/* x by the axis that was chosen: seconds since the trial's start, or milliseconds of the clock; records and epochs where they are known. */
export function points(s: Series, metric: string, x: XAxis, config: Experiment["config"] = null): Points {
    const out: Points = { x: [], y: [] }, batch = ofBatch(s, x, config);
    if (!(batch > 0)) return out;
    const start = new Date(s.trial.startTime ?? NaN).getTime();
    for (const g of s.metrics)
        for (const p of g.data) {
            const v = p.values[metric.slice(g.group.length + 1)];
            if (!metric.startsWith(g.group + ".") || typeof v !== "number") continue;
            const clock = new Date(p.time).getTime();
            out.x.push(x === "clock" ? clock : x === "time" ? Math.max(0, (clock - start) / 1000) : p.batches * batch);
            out.y.push(v);
        }
    return x === "time" || x === "clock" ? inOrder(out) : out;
}

/* A trial that went back to a checkpoint reports older batches at later times. */
function inOrder(p: Points): Points {
    const order = p.x.map((_, i) => i).sort((a, b) => p.x[a]! - p.x[b]!);
    return { x: order.map((i) => p.x[i]!), y: order.map((i) => p.y[i]!) };
}

export interface Search {
    name: string;
    metric: string;
    smallerIsBetter: boolean;
}

/* What the configuration says of the search. */
export function searchOf(e: Experiment): Search {
    const searcher = (e.config?.["searcher"] ?? {}) as Record<string, unknown>;
    return { name: String(searcher["name"] ?? e.searcherType), metric: String(searcher["metric"] ?? e.searcherMetric), smallerIsBetter: searcher["smaller_is_better"] !== false };
}

/* Each trial with its hyperparameters and, under the metric's own name, its best value; "NaN" is none. */
export function rowsOf(trials: Trial[], metric: string): Row[] {
    const best = (t: Trial): number | null => (typeof t.searcherMetricValue === "number" ? t.searcherMetricValue : null);
    return trials.map((t) => ({ id: t.id, values: Object.assign(flat(t.hparams), { [metric]: best(t) }) }));
}

/* The axes of what varies (or is named), the metric last. */
export function axesOf(e: Experiment, rows: Row[], names: string[], metric: string): Axis[] {
    const d = declared(e.config?.["hyperparameters"]);
    const of = (name: string): Axis => axis(name, rows.map((r): Value | undefined => r.values[name]), d[name]);
    return [...names.filter((n) => n !== metric).map(of), axis(metric, rows.map((r) => r.values[metric]), {})];
}

/* The best trial by the search's metric so far; null: none has one. */
export function bestOf(trials: Trial[], smallerIsBetter: boolean): Trial | null {
    let best: Trial | null = null;
    for (const t of trials) {
        const v = t.searcherMetricValue, least = best?.searcherMetricValue;
        if (typeof v === "number" && (typeof least !== "number" || (smallerIsBetter ? v < least : v > least))) best = t;
    }
    return best;
}
