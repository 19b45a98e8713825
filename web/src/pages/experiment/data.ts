/* What the experiment's page knows, put together from the API's answers. The shaping is pure; only ask... talks to the master. */
import { call, stream, type Messages } from "../../api/client";
import { axis, declared, flat, type Axis, type Value } from "../../charts/axes";
import type { Row } from "../../charts/parallel";
import { nearest, type Points } from "../../charts/sample";
import type { XAxis } from "../../state/address";
import { epochAt } from "./epochs";

export type Experiment = Messages["experiment.v1.Experiment"];
export type Trial = Messages["trial.v1.Trial"];
export type Metric = Messages["MetricIdentifier"];
export type Checkpoint = Messages["checkpoint.v1.Checkpoint"];
export type Series = Messages["ComparableTrial"];
/* A range that is zoomed into. */
export type Batches = [number, number] | null;

export const CURVES_MOST = 500; // the best, the running and the chosen; the page says when there are more
export const AT_ONCE = 50; // trials that one time-series call takes: the head of a request has room for some 80 parameters
export const GROUPED_MOST = 10_000; // trials that groups' curves are the means of
const POINTS_ALL = 750_000, POINTS = 1500; // two a pixel of most screens; of very many curves, which are taken together, fewer
const TRIALS_PAGE = 1000, SELDOM_MS = 60_000;

export function metricId(m: Metric): string {
    return `${m.group}.${m.name}`;
}

/*
 * All of them: what is best, how they are grouped and what matters is counted over each. What has come is told when it
 * has doubled: what is made of it each time costs no more in all than of the whole.
 */
export async function askTrials(experimentId: string, signal: AbortSignal, told: (some: Trial[]) => void = () => undefined): Promise<Trial[]> {
    const all: Trial[] = [];
    for (let next = 1;;) {
        const r = await call("GET /api/v1/experiments/{experimentId}/trials", { path: { experimentId }, signal,
            query: { sortBy: "SORT_BY_ID", orderBy: "ORDER_BY_ASC", offset: all.length, limit: TRIALS_PAGE } });
        all.push(...r.trials);
        if (!r.trials.length || all.length >= r.pagination.total) return all;
        if (all.length < next) continue;
        told([...all]);
        next = 2 * all.length;
    }
}

/* A larger search is asked for less often: each time costs as many requests as it has thousands. */
export function trialsEvery(trials: number, everyMs: number): number {
    return Math.min(SELDOM_MS, everyMs * Math.max(1, Math.ceil(trials / TRIALS_PAGE)));
}

/* Of those that are there still: the best by the searcher's metric. */
export async function askBestCheckpoint(e: Experiment, signal: AbortSignal): Promise<{ checkpoint: Checkpoint | null }> {
    const orderBy = searchOf(e).smallerIsBetter ? "ORDER_BY_ASC" : "ORDER_BY_DESC";
    const { checkpoints: [first] } = await call("GET /api/v1/experiments/{id}/checkpoints",
        { path: { id: e.id }, query: { sortByAttr: "SORT_BY_SEARCHER_METRIC", orderBy, states: ["STATE_COMPLETED"], limit: 1 }, signal });
    return { checkpoint: first && typeof first.training.searcherMetric === "number" ? first : null };
}

/* What was the best when it was asked for; null where the list of checkpoints tells that it has been removed since. One that the list lacks may be newer. */
export function stillThere<B extends { uuid: string }>(best: B | null, list: Pick<Checkpoint, "uuid" | "state">[]): B | null {
    const found = best && list.find((c) => c.uuid === best.uuid);
    return found && found.state !== "STATE_COMPLETED" ? null : best;
}

/* At which of its trial's batches it was made. */
export function batchesOf(c: Checkpoint): number | null {
    const n = c.metadata?.["steps_completed"];
    return typeof n === "number" ? n : null;
}

/* One look at the names that have been reported. The stream goes on as long as one of the experiments does: its first line has all that is known. */
export async function askMetrics(ids: number[], signal: AbortSignal): Promise<Metric[]> {
    const found = new Map<string, Metric>();
    for await (const m of stream<Messages["ExpMetricNamesResponse"]>("GET /api/v1/experiments/metrics-stream/metric-names", { query: { ids }, signal })) {
        for (const name of m.metricNames ?? []) found.set(metricId(name), name);
        break;
    }
    return [...found.values()].sort((a, b) => a.group.localeCompare(b.group) || a.name.localeCompare(b.name));
}

/* How many points of a curve there is use for. */
export function pointsOf(curves: number): number {
    return Math.min(POINTS, Math.floor(POINTS_ALL / curves));
}

/* What is asked of each trial. */
export interface Wanted { metrics: string[]; batches: Batches; points: number }

/* Of some trials the points of metrics, of batches that are zoomed into more finely; `from`: of these and later batches alone. */
export async function askPart(trialIds: number[], { metrics, batches, points }: Wanted, from: number, signal: AbortSignal): Promise<Series[]> {
    const lo = batches ? Math.max(0, Math.floor(batches[0])) : 0, start = Math.max(lo, from);
    const range = { ...(start > 0 && { startBatches: start }), ...(batches && { endBatches: Math.max(1, Math.ceil(batches[1])) }) };
    return (await call("GET /api/v1/trials/time-series", { query: { trialIds, metricIds: metrics, maxDatapoints: points, ...range }, signal })).trials;
}

/* Of more trials than can be drawn: the chosen, the running and the best. */
export function drawn(trials: Trial[], chosen: number[], smallerIsBetter: boolean): Trial[] {
    if (trials.length <= CURVES_MOST) return trials;
    const pick = new Set(chosen), sign = smallerIsBetter ? 1 : -1;
    const order = (t: Trial): number => (pick.has(t.id) ? 0 : t.state === "STATE_RUNNING" ? 1 : 2);
    const by = (t: Trial): number => (typeof t.searcherMetricValue === "number" ? sign * t.searcherMetricValue : Infinity);
    return [...trials].sort((a, b) => order(a) - order(b) || by(a) - by(b) || a.id - b.id).slice(0, CURVES_MOST).sort((a, b) => a.id - b.id);
}

/* Whose curves are asked for. A group's is the mean of all of its trials, drawn or not. */
export function wanted(trials: Trial[], chosen: number[], isGrouped: boolean, smallerIsBetter: boolean): Trial[] {
    return isGrouped ? trials.slice(0, GROUPED_MOST) : drawn(trials, chosen, smallerIsBetter);
}

/* What a group's metrics are called in summaries. */
const SUMMARIES = new Map([["validation", "validation_metrics"], ["training", "avg_metrics"]]), GROUPS = new Map([...SUMMARIES].map(([group, key]) => [key, group]));

/* What people named may be called as what every object has. */
const own = (o: unknown, key: string): unknown => (typeof o === "object" && o !== null && Object.hasOwn(o, key) ? (o as Record<string, unknown>)[key] : undefined);

/* "validation" of "validation.top.5". */
export function groupOf(metric: string): string {
    return metric.slice(0, metric.indexOf("."));
}

/* Trials whose newest value of the metric is none that a chart has a place for: it has diverged. */
export function lost(trials: Pick<Trial, "summaryMetrics">[], metric: string): number {
    const group = groupOf(metric), key = SUMMARIES.get(group) ?? group, name = metric.slice(group.length + 1);
    const last = (t: Pick<Trial, "summaryMetrics">): unknown => own(own(own(t.summaryMetrics, key), name), "last");
    return trials.filter((t) => ["NaN", "Infinity", "-Infinity"].includes(last(t) as string)).length;
}

/* Said of them below a chart; "": there is none. */
export function lostText(trials: Pick<Trial, "summaryMetrics">[], metric: string): string {
    const n = lost(trials, metric);
    return n ? `; of ${n.toLocaleString("en")} ${n === 1 ? "trial" : "trials"} the newest value is NaN or infinite: not drawn` : "";
}

/* What one batch is on an axis that counts them; NaN: the trial does not say how many records it has, or an epoch. */
function ofBatch(trial: Trial, x: XAxis, config: Experiment["config"]): number {
    const records = Number((trial.hparams as Record<string, unknown> | null)?.["global_batch_size"]), perEpoch = Number(config?.["records_per_epoch"]);
    if (x !== "epochs") return x === "records" ? records : 1;
    const length = Number(trial.epochLength); // what its own loop counts by goes before what the configuration says
    return length > 0 ? 1 / length : perEpoch > 0 ? records / perEpoch : NaN;
}

/* Where a report stands on the axis that was chosen: seconds since the trial's start, or milliseconds of the clock; records and epochs where they are known. */
export function placeOf(trial: Trial, x: XAxis, config: Experiment["config"] = null): (batches: number, time: string) => number {
    const batch = ofBatch(trial, x, config), start = new Date(trial.startTime ?? NaN).getTime();
    if (x === "clock") return (_, time) => new Date(time).getTime();
    return x === "time" ? (_, time) => Math.max(0, (new Date(time).getTime() - start) / 1000) : (batches) => batches * batch;
}

/* What was reported of a metric, where `at` puts it. */
function reported(s: Series, metric: string, at: (batches: number, time: string) => number): Points {
    const out: Points = { x: [], y: [] };
    for (const g of s.metrics)
        for (const p of g.data) {
            const v = p.values[metric.slice(g.group.length + 1)];
            if (!metric.startsWith(g.group + ".") || typeof v !== "number") continue;
            out.x.push(at(p.batches, p.time));
            out.y.push(v);
        }
    return out;
}

/* `epochs`: the metric that says them, which goes before what the configuration says. */
export function points(s: Series, metric: string, x: XAxis, config: Experiment["config"] = null, epochs: string | null = null): Points {
    const own = x === "epochs" && epochs ? epochAt(reported(s, epochs, (batches) => batches)) : null;
    if (own) return inOrder(reported(s, metric, own));
    if (!(ofBatch(s.trial, x, config) > 0)) return { x: [], y: [] };
    const out = reported(s, metric, placeOf(s.trial, x, config));
    return x === "time" || x === "clock" ? inOrder(out) : out;
}

/* A trial that went back to a checkpoint reports older batches at later times, and may count its epochs from 0 again. */
function inOrder(p: Points): Points {
    const order = p.x.map((_, i) => i).sort((a, b) => p.x[a]! - p.x[b]!);
    return { x: order.map((i) => p.x[i]!), y: order.map((i) => p.y[i]!) };
}

/* Where on the axis a checkpoint of these batches was made, by the point of the metric that is nearest; null: there is none, or it lies outside of what is zoomed into. */
export function starOf(s: Series, metric: string, batches: number | null, x: XAxis, config: Experiment["config"], epochs: string | null, zoom: Batches = null): { x: number; y: number } | null {
    if (batches !== null && zoom && (batches < zoom[0] || batches > zoom[1])) return null; // of other batches there may be no points
    const all = reported(s, metric, (b) => b).x, i = batches === null ? -1 : nearest(all, batches), place = all[i], name = metric.slice(groupOf(metric).length + 1);
    if (place === undefined) return null;
    const isAway = (p: { batches: number }, group: string) => group === groupOf(metric) && p.batches !== place;
    const one = { ...s, metrics: s.metrics.map((g) => ({ ...g, data: g.data.map((p) => (isAway(p, g.group) ? { ...p, values: { ...p.values, [name]: null } } : p)) })) } as Series;
    const p = points(one, metric, x, config, epochs);
    return p.x.length ? { x: p.x[0]!, y: p.y[0]! } : null;
}

/* "group.name" of each metric that was reported as numbers: what was the newest, the lowest and the highest. */
export interface Newest { last: unknown; min: unknown; max: unknown }
export function newestOf(trial: Pick<Trial, "summaryMetrics">): Map<string, Newest> {
    return new Map(Object.entries(trial.summaryMetrics ?? {}).flatMap(([key, all]) =>
        Object.entries((all ?? {}) as Record<string, Newest>).map(([name, of]): [string, Newest] => [`${GROUPS.get(key) ?? key}.${name}`, of])));
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
