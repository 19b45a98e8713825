/* Every report of a metric as a file: what a chart shows is the lowest and the highest of each stretch. */
import { useEffect, useRef, useState } from "preact/hooks";
import { stream, type Messages } from "../../api/client";
import type { Points } from "../../charts/sample";
import type { XAxis } from "../../state/address";
import { csvLines, saveAs } from "../../ui/words/save";
import { toast } from "../../ui/talk/toasts";
import { epochAt } from "./epochs";
import { AT_ONCE, groupOf, placeOf, type Experiment, type Trial } from "./data";

type Report = Messages["trial.v1.MetricsReport"];
type Row = [trial: number, metric: string, x: number, value: number];

/* The values of some metrics of one group in a report; NaN and infinities too. */
export function valuesOf(r: Pick<Report, "metrics" | "group">, metrics: string[]): [string, number][] {
    const values = (r.metrics?.[r.group === "validation" ? "validation_metrics" : "avg_metrics"] ?? {}) as Record<string, unknown>;
    return metrics.flatMap((m): [string, number][] => {
        const name = m.slice(r.group.length + 1), v = Object.hasOwn(values, name) ? values[name] : undefined;
        const isNumber = typeof v === "number" || v === "NaN" || v === "Infinity" || v === "-Infinity";
        return isNumber ? [[m, Number(v)]] : [];
    });
}

function reports(trials: Trial[], group: string, signal: AbortSignal) {
    return stream<Messages["GetMetricsResponse"]>("GET /api/v1/trials/metrics/trial_metrics", { query: { trialIds: trials.map((t) => t.id), group }, signal });
}

/* Of trials that count epochs themselves: the epoch of a batch. */
async function askEpochs(trials: Trial[], epochs: string, signal: AbortSignal): Promise<Map<number, (batches: number) => number>> {
    const known = new Map<number, Points>(trials.map((t) => [t.id, { x: [], y: [] }]));
    for await (const { metrics } of reports(trials, groupOf(epochs), signal))
        for (const r of metrics) for (const [, v] of valuesOf(r, [epochs])) {
            known.get(r.trialId)!.x.push(r.totalBatches);
            known.get(r.trialId)!.y.push(v);
        }
    return new Map([...known].flatMap(([id, p]) => { const at = epochAt(p); return at ? [[id, at]] : []; }));
}

async function askPart({ trials, group, metrics, config, epochs }: WholePart, { x }: Whole, told: (rows: number) => void, signal: AbortSignal): Promise<Row[]> {
    const own = x === "epochs" && epochs ? await askEpochs(trials, epochs, signal) : new Map<number, (batches: number) => number>();
    const rows: Row[] = [], at = new Map(trials.map((t) => [t.id, own.get(t.id) ?? placeOf(t, x, config)]));
    for await (const { metrics: some } of reports(trials, group, signal)) {
        for (const r of some) for (const [metric, value] of valuesOf(r, metrics)) rows.push([r.trialId, metric, at.get(r.trialId)!(r.totalBatches, r.endTime ?? ""), value]);
        told(rows.length);
    }
    return rows.sort((a, b) => a[0] - b[0] || a[2] - b[2]);
}

export interface Whole { trials: Trial[]; metrics: string[]; x: XAxis; /* As epochMetric() says. */ epochsOf?: (metric: string) => string | null; configOf: (t: Trial) => Experiment["config"] }

/* What one request asks for. */
export interface WholePart { trials: Trial[]; group: string; metrics: string[]; config: Experiment["config"]; /* What says those of this group. */ epochs: string | null }

export function partsOf({ trials, metrics, configOf, epochsOf }: Whole): WholePart[] {
    const same = new Map<number, Trial[]>(), parts: WholePart[] = [];
    const groups = [...new Set(metrics.map(groupOf))].map((group) => ({ group, metrics: metrics.filter((m) => groupOf(m) === group) }));
    for (const t of trials) {
        const of = same.get(t.experimentId);
        if (of) of.push(t);
        else same.set(t.experimentId, [t]);
    }
    for (const of of same.values())
        for (let i = 0; i < of.length; i += AT_ONCE)
            for (const g of groups) parts.push({ trials: of.slice(i, i + AT_ONCE), ...g, config: configOf(of[0]!), epochs: epochsOf?.(g.metrics[0]!) ?? null });
    return parts;
}

/* A request after the other: each answer is handed to the browser, which keeps what is large on its disk. */
export async function wholeCsv(whole: Whole, ask: (part: WholePart, told: (rows: number) => void) => Promise<Row[]>, told: (rows: number) => void): Promise<Blob> {
    const parts = [new Blob([csvLines([["trial", "metric", whole.x, "value"]])])];
    let done = 0;
    for (const part of partsOf(whole)) {
        const rows = await ask(part, (n) => told(done + n));
        parts.push(new Blob([csvLines(rows)]));
        done += rows.length;
    }
    return new Blob(parts, { type: "text/csv;charset=utf-8" });
}

/* A press saves all that was reported of these trials, however little of it the chart has room for. */
export function WholeCsv({ name, whole }: { name: string; whole: Whole }) {
    const [done, setDone] = useState<number | null>(null), stop = useRef<AbortController | null>(null);
    useEffect(() => () => stop.current?.abort(), []);
    const save = async () => {
        const mine = stop.current = new AbortController();
        setDone(0);
        try {
            saveAs(name, await wholeCsv(whole, (part, told) => askPart(part, whole, told, mine.signal), setDone));
        } catch (e) {
            if (!mine.signal.aborted) toast(`CSV: ${(e as Error).message}`, true);
        }
        setDone(null);
    };
    if (done !== null) return <button type="button" onClick={() => stop.current?.abort()}>Stop: {done.toLocaleString("en")} rows…</button>;
    return <button type="button" title="All that was reported of these trials, not only what is drawn" onClick={() => void save()}>CSV</button>;
}
