/* What the profiler saw of a trial's hosts and GPUs: one figure at a time, a curve for each host or GPU. */
import { useMemo, useState } from "preact/hooks";
import { stream, type Messages } from "../../api/client";
import { Curves } from "../../charts/curves";
import { curvesPicture, X_WORDS, type Shape } from "../../charts/curves_picture";
import { colourOf, dashesOf } from "../../charts/palette";
import { PictureButtons } from "../../charts/picture";
import { useLive } from "../../state/live";
import { query, setQuery } from "../../state/router";
import { isDark } from "../../ui/dark";
import { count } from "../../ui/words/format";
import { Name, shown } from "../../ui/words/name";
import { csv, saveAs } from "../../ui/words/save";
import { Problem } from "../problem";

const LIVE_MS = 5000;
type Labels = Messages["trial.v1.TrialProfilerMetricLabels"];
type Batch = Messages["trial.v1.TrialProfilerMetricsBatch"];
export interface Profile { label: string; batches: number[]; times: number[]; values: number[] }

/* Of a GPU, of a host, or of the trial as a whole. */
export function labelOf(l: Pick<Labels, "agentId" | "gpuUuid">): string {
    return [l.agentId, l.gpuUuid].filter(Boolean).map((t) => shown(t)).join(" ") || "trial";
}

/* What is seen first: how busy what computes is. */
export function firstName(names: readonly string[]): string {
    return ["gpu_util", "cpu_util", "cpu_util_simple"].find((n) => names.includes(n)) ?? names[0] ?? "";
}

/* Batches of one series, the older first. */
export function joined(label: string, batches: readonly Batch[]): Profile {
    const rows = batches.flatMap((b) => b.values.map((v, i) => ({ v: Number(v), batch: b.batches[i] ?? 0, at: new Date(b.timestamps[i] ?? NaN).getTime() })))
        .filter((r) => !Number.isNaN(r.at)).sort((a, b) => a.at - b.at);
    return { label, batches: rows.map((r) => r.batch), times: rows.map((r) => r.at), values: rows.map((r) => r.v) };
}

async function askSeries(id: string, signal: AbortSignal): Promise<Labels[]> {
    let last: Labels[] = [];
    for await (const { labels } of stream<{ labels: Labels[] }>("GET /api/v1/trials/{trialId}/profiler/available_series", { path: { trialId: id }, signal })) last = labels;
    return last;
}

async function askProfile(id: string, l: Labels, signal: AbortSignal): Promise<Profile> {
    const asked = { "labels.name": l.name, "labels.agentId": l.agentId, "labels.gpuUuid": l.gpuUuid, "labels.metricType": l.metricType }, got: Batch[] = [];
    for await (const { batch } of stream<{ batch: Batch }>("GET /api/v1/trials/{labels.trialId}/profiler/metrics", { path: { "labels.trialId": id }, query: asked, signal })) got.push(batch);
    return joined(labelOf(l), got);
}

function useShape(profiles: Profile[], byBatch: boolean): Shape {
    const dark = isDark.value;
    return useMemo(() => {
        const start = Math.min(...profiles.map((p) => p.times[0] ?? Infinity));
        const curves = profiles.map((p, i, all) => ({ id: i, label: p.label, points: { x: byBatch ? p.batches : p.times.map((t) => (t - start) / 1000), y: p.values }, raw: null,
            colour: colourOf(i, dark), dash: dashesOf([...all.keys()]).get(i)!, layer: "plain" as const }));
        return { curves: curves.filter((c) => c.points.x.length), x: byBatch ? "batches" : "time", logX: false, logY: false, zoom: null };
    }, [profiles, byBatch, dark]);
}

const NOTHING: Profile[] = [];

export function TrialProfile({ id, ended }: { id: string; ended: boolean }) {
    const [byBatch, setByBatch] = useState(false), [zoom, setZoom] = useState<[number, number] | null>(null);
    const every = () => (ended ? null : LIVE_MS), series = useLive(`profile of ${id}`, String(ended), (s) => askSeries(id, s), every);
    const all = series.data ?? [], names = [...new Set(all.map((l) => l.name))].sort(), name = names.find((n) => n === query.value.get("profile")) ?? firstName(names);
    const live = useLive(`profile ${name} of ${id}`, `${ended} ${all.length}`, (s) => Promise.all(all.filter((l) => l.name === name).map((l) => askProfile(id, l, s))), every);
    const shape = { ...useShape(live.data ?? NOTHING, byBatch), zoom }, n = shape.curves.reduce((sum, c) => sum + c.points.x.length, 0);
    const summary = `${name}: ${count(shape.curves.length, "curve")}, ${count(n, "point")}`;
    const save = () => saveAs(`trial_${id}_${name}.csv`, csv(["of", shape.x, name], shape.curves.flatMap((c) => c.points.x.map((x, i) => [c.label, x, c.points.y[i]]))));
    const pick = (key: string) => { setQuery({ profile: key }); setZoom(null); };
    if (series.data && !names.length) return <section class="panel stacked" aria-label="Profile"><h2>Profile</h2>
        <p class="soft">{ended ? "Nothing was profiled" : "Nothing is profiled yet"}: <code>profiling: {"{"}enabled: true{"}"}</code> in an experiment's configuration does it.</p></section>;
    return <section class="panel stacked" aria-label="Profile">
        <header><h2>Profile</h2>
            <label class="quiet">of <select value={name} onChange={(e) => pick(e.currentTarget.value)}>{names.map((t) => <option key={t} value={t}>{shown(t)}</option>)}</select></label>
            <label class="quiet">by <select value={byBatch ? "batches" : "time"} onChange={(e) => { setByBatch(e.currentTarget.value === "batches"); setZoom(null); }}>
                <option value="time">{X_WORDS.time}</option><option value="batches">{X_WORDS.batches}</option></select></label></header>
        <Problem error={series.error ?? live.error} what="The profile" />
        {n > 0 && <Curves {...shape} onZoom={setZoom} onHover={() => undefined} summary={summary} height={220} />}
        <footer class="row soft">{shape.curves.map((c) => <span key={c.label} class="chip"><span class="dot" style={{ background: c.colour }} /><Name text={c.label} /></span>)}
            <span>{summary}</span>{zoom && <button type="button" onClick={() => setZoom(null)}>Whole range</button>}
            <span class="row push"><button type="button" onClick={save}>CSV</button><PictureButtons name={`trial_${id}_${name}`} of={() => curvesPicture(shape, `trial ${id}: ${summary}`)} /></span></footer>
    </section>;
}
