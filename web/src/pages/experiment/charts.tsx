/* The two pictures of a search: the curves of its trials, and its hyperparameters side by side; each follows the other. */
import { useMemo, useRef, useState } from "preact/hooks";
import type { Axis } from "../../charts/axes";
import { varying } from "../../charts/axes";
import { unbrushed, within } from "../../charts/brush";
import { packed, type Collapsed, type Packed } from "../../charts/work/collapse";
import { Curves } from "../../charts/curves";
import { curvesPicture, X_WORDS, type Shape } from "../../charts/curves_picture";
import type { Curve } from "../../charts/draw";
import { colourOf, dashesOf } from "../../charts/palette";
import { Parallel, parallelPicture, type ParallelShape, type Row } from "../../charts/parallel";
import { PictureButtons } from "../../charts/picture";
import type { Points } from "../../charts/sample";
import { smooth } from "../../charts/smooth";
import { useWork, work } from "../../charts/work/working";
import { AXES_MAX, X_AXES, type XAxis } from "../../state/address";
import { useLive } from "../../state/live";
import { Choices } from "../../ui/table/choices";
import { isDark } from "../../ui/dark";
import { count, number } from "../../ui/words/format";
import { shown } from "../../ui/words/name";
import { csv, saveAs } from "../../ui/words/save";
import { isTerminal } from "../../ui/state";
import type { Seen } from "./experiment";
import { groupName, groupsOf, type TrialGroup } from "./groups";
import { axesOf, batchesOf, bestOf, lostText, metricId, points, rowsOf, searchOf, starOf, trialsEvery, wanted } from "./data";
import { epochMetric } from "./epochs";
import { KeptSeries } from "./kept_series";
import { Problem } from "../problem";
import { MarkDialog } from "./mark";
import { WholeCsv } from "./whole";

const CURVES_MS = 1000, AXES_MOST = 12;

/* Rows and axes of what varies, and which trials lie within all marks. */
export function useSpace(seen: Seen): { rows: Row[]; axes: Axis[]; names: string[]; inside: Set<number> } {
    const { exp, trials, view } = seen, metric = searchOf(exp).metric;
    return useMemo(() => {
        const rows = rowsOf(trials, metric), names = varying(rows.map((r) => r.values)).filter((n) => n !== metric);
        const axes = axesOf(exp, rows, names, metric);
        return { rows, axes, names, inside: new Set(rows.filter((r) => within(r.values, axes, view.brush)).map((r) => r.id)) };
    }, [trials, JSON.stringify(view.brush), exp.id]);
}

/* A curve of one trial, or of a group. */
type TrialsCurve = Omit<Curve, "layer"> & { of: number[] };

export function layer(of: number[], seen: Pick<Seen, "view" | "hover">, inside: ReadonlySet<number>): Curve["layer"] {
    const { trials, brush, group } = seen.view, hover = seen.hover.value;
    if (hover !== null && of.includes(hover)) return "front";
    if (trials.length && !group.length) return of.some((id) => trials.includes(id)) ? "front" : "back";
    return hover !== null || (!group.length && brush.length && !of.some((id) => inside.has(id))) ? "back" : "plain";
}

function Options({ seen }: { seen: Seen }) {
    const { view, set, metrics, metric } = seen;
    return <>
        <label class="quiet">Metric <select value={metric} onChange={(e) => set({ metric: e.currentTarget.value, zoom: null })}>
            {!metrics.some((m) => metricId(m) === metric) && <option value={metric}>{metric}</option>}
            {metrics.map((m) => <option key={metricId(m)} value={metricId(m)}>{metricId(m)}</option>)}
        </select></label>
        <label class="quiet">by <select value={view.x} onChange={(e) => set({ x: e.currentTarget.value as XAxis, zoom: null })}>
            {X_AXES.map((x) => <option key={x} value={x}>{X_WORDS[x]}</option>)}
        </select></label>
        <label class="quiet"><input type="checkbox" checked={view.logY} onChange={(e) => set({ logY: e.currentTarget.checked })} /> log y</label>
        <label class="quiet"><input type="checkbox" checked={view.logX} onChange={(e) => set({ logX: e.currentTarget.checked, zoom: null })} /> log x</label>
        <label class="quiet">smooth <input type="range" min="0" max="0.99" step="0.01" value={view.smooth}
            onInput={(e) => set({ smooth: Number(e.currentTarget.value) })} /></label>
    </>;
}

interface Series { id: number; points: Points; star: { x: number; y: number } | null }

interface Together { by: string; groups: { group: TrialGroup; n: number }[]; curves: Packed }

/* What a worker makes a curve a group of, over its trials that are here. */
function together(seen: Seen, series: Series[]): Together {
    const { view, exp, trials } = seen, { metric, smallerIsBetter } = searchOf(exp), of = new Map(series.map((s) => [s.id, s.points]));
    const all = groupsOf(rowsOf(trials, metric), view.group, metric, smallerIsBetter).map((group) => ({ group, here: group.ids.flatMap((i) => of.get(i) ?? []).filter((p) => p.x.length) }));
    return { by: groupedBy(seen), groups: all.map(({ group, here }) => ({ group, n: here.length })), curves: packed(all.map((g) => g.here)) };
}

/* Curves of another axis or of other groups are not what is asked for; those of the same that are a little older are. */
const groupedBy = ({ view, exp, metric }: Seen): string => JSON.stringify([exp.id, metric, view.x, view.group]);

/* It has the colour of its first trial. */
function grouped(seen: Seen, { groups }: Together, answer: Collapsed[]): TrialsCurve[] {
    const dashes = dashesOf(groups.map(({ group }) => group.ids[0]!)), { smooth: weight, group: by } = seen.view;
    return groups.flatMap(({ group: g, n }, i): TrialsCurve[] => {
        const id = g.ids[0]!, { points, band } = answer[i]!;
        return points.x.length ? [{ id, of: g.ids, label: groupName(by, g, n), points: smooth(points, weight), raw: weight > 0 ? points : null, band,
            colour: colourOf(id, isDark.value), dash: dashes.get(id)! }] : [];
    });
}

function single(seen: Seen, series: Series[]): TrialsCurve[] {
    const dashes = dashesOf([...new Set([...seen.trials, ...series].map((t) => t.id))]); // a trial keeps its own whichever are drawn
    return series.filter((s) => s.points.x.length).map((s) => ({
        id: s.id, of: [s.id], label: `trial ${s.id}`, points: smooth(s.points, seen.view.smooth), raw: seen.view.smooth > 0 ? s.points : null,
        colour: colourOf(s.id, isDark.value), dash: dashes.get(s.id)!, star: s.star,
    }));
}

/* Groups' curves come when the worker has them. */
function useCurves(seen: Seen, series: Series[]): { curves: TrialsCurve[]; isComing: boolean; why: string } {
    const [why, setWhy] = useState(""), { view, trials } = seen, isGrouped = view.group.length > 0, job = useMemo(() => (isGrouped ? together(seen, series) : null), [series, view.group.join("\n"), isGrouped && trials]);
    const found = useWork(job, (j) => work("collapsedAll", j.curves), setWhy), has = isGrouped && found?.job.by === groupedBy(seen) ? found : null;
    const curves = useMemo(() => (has ? grouped(seen, has.job, has.answer) : isGrouped ? [] : single(seen, series)), [has, isGrouped, !isGrouped && series, view.smooth, isDark.value]);
    return { curves, isComing: isGrouped && !has, why };
}

/* What it takes to count records and epochs. */
export function UnknownAxis() {
    return <span>Records are counted by the hyperparameter global_batch_size. Epochs are known where a trial's loop says how long one is (C trials, PyTorchTrial), by a metric that is called epoch or epochs, and by records_per_epoch.</span>;
}

function CurvesPanel({ seen, inside }: { seen: Seen; inside: Set<number> }) {
    const { exp, trials, view, set, metric } = seen, { smallerIsBetter } = searchOf(exp);
    const ids = wanted(trials, view.trials, view.group.length > 0, smallerIsBetter).map((t) => t.id);
    const zoom = view.x === "batches" && view.zoom ? view.zoom : null, epochs = view.x === "epochs" ? epochMetric(seen.metrics, metric) : null;
    const ended = isTerminal(exp.state), kept = useRef(new KeptSeries()).current, asked = [...new Set([metric, epochs ?? metric])];
    const live = useLive(`series ${exp.id} ${metric}`, `${ids.join()} ${zoom} ${epochs} ${ended}`, (s) => kept.ask(ids, asked, zoom, ended, s), () => (ended ? null : trialsEvery(ids.length, CURVES_MS)));
    const best = seen.best && { trial: seen.best.training.trialId, batches: batchesOf(seen.best) };
    const series = useMemo(() => (live.data ?? []).map((s) => ({ id: s.trial.id, points: points(s, metric, view.x, exp.config, epochs),
        star: s.trial.id === best?.trial ? starOf(s, metric, best.batches, view.x, exp.config, epochs, zoom) : null })), [live.data, metric, view.x, epochs, best?.trial, best?.batches, String(zoom)]);
    const { curves: plain, isComing, why } = useCurves(seen, series), curves = plain.map((c): Curve => ({ ...c, layer: layer(c.of, seen, inside) }));
    const n = series.reduce((sum, s) => sum + s.points.x.length, 0), first = bestOf(trials, smallerIsBetter);
    const summary = `${metric}: ${count(curves.length, "curve")}, ${count(n, "point")}` + (first ? `; the best trial is ${first.id}` : "") + (curves.some((c) => c.star) ? "; ★ its best checkpoint" : "") + lostText(trials, metric);
    const chart: Shape = { curves, x: view.x, logX: view.logX, logY: view.logY, zoom: view.zoom };
    return <section class="panel" aria-label="Curves">
        <header><h2>Curves</h2><Options seen={seen} /></header>
        <Problem error={live.error} what="The curves" />
        <Curves {...chart} summary={summary} onHover={seen.setHover}
            onZoom={(z) => set({ zoom: z })} onPick={(id) => set({ trials: toggled(view.trials, id) })} />
        <footer class="row soft">
            <span class="curve-summary">{isComing ? `${metric}: ${why ? `not taken together: ${why}` : "taken together…"}` : summary}{ids.length < trials.length ? ` (of ${trials.length} trials: ${view.group.length ? "the first" : "the chosen, the running and the best"})` : ""}</span>
            {!curves.length && (view.x === "records" || view.x === "epochs") && <UnknownAxis />}
            {view.zoom && <button type="button" onClick={() => set({ zoom: null })}>Whole range</button>}
            <span class="row push"><WholeCsv name={`experiment_${exp.id}_${metric}.csv`} whole={{ trials, metrics: [metric], x: view.x, epochsOf: () => epochs, configOf: () => exp.config }} />
                <PictureButtons name={`experiment_${exp.id}_${metric}`} of={() => curvesPicture(chart, `${shown(exp.name)} #${exp.id}: ${summary}`)} /></span>
        </footer>
    </section>;
}

export function toggled(ids: number[], id: number): number[] {
    return ids.includes(id) ? ids.filter((x) => x !== id) : [...ids, id].sort((a, b) => a - b);
}

function ParallelPanel({ seen, rows, axes, names, inside }: { seen: Seen } & ReturnType<typeof useSpace>) {
    const { view, set, exp } = seen;
    const wanted = view.axes.filter((n) => names.includes(n)), seenNames = new Set(wanted.length ? wanted : names.slice(0, AXES_MOST)), [marking, setMarking] = useState<Axis | null>(null);
    const some = [...axes.slice(0, -1).filter((a) => seenNames.has(a.name)), axes[axes.length - 1]!];
    const words = `Parallel coordinates of ${count(rows.length, "trial")}: ${some.map((a) => a.name).join(", ")}`;
    const chart: ParallelShape = { axes: some, rows, brushes: view.brush, smallerIsBetter: searchOf(exp).smallerIsBetter, hover: seen.hover.value };
    const save = () => saveAs(`experiment_${exp.id}_hyperparameters.csv`, csv(["trial", ...axes.map((a) => a.name)], rows.filter((r) => inside.has(r.id)).map((r) => [r.id, ...axes.map((a) => r.values[a.name])])));
    return <section class="panel" aria-label="Hyperparameters">
        <header><h2>Hyperparameters</h2><span class="soft">drag along an axis to mark a part of it, or press its name</span>
            {names.length > 1 && <Choices name="Axes" summary={`${seenNames.size} of ${names.length}`} ticked={[...seenNames]} set={(ticked) => set({ axes: names.filter((n) => ticked.includes(n)).slice(0, AXES_MAX) })}
                of={names.map((n) => ({ value: n, text: n }))} note={<p class="soft">With none the first {AXES_MOST} are shown.</p>} />}</header>
        <Parallel {...chart}
            onHover={seen.setHover} onBrush={(brush) => set({ brush })} onAxis={setMarking} summary={words} />
        {marking && <MarkDialog key={marking.name} axis={marking} brushes={view.brush} set={(brush) => set({ brush })} close={() => setMarking(null)} />}
        <footer class="row soft">
            {view.brush.map((b) => {
                const a = axes.find((x) => x.name === b.name);
                const ends = a?.kind === "category" ? a.categories.filter((_, i) => i >= b.lo && i <= b.hi).join(", ") : `${number(b.lo)} … ${number(b.hi)}`;
                return <span key={b.name} class="chip">{b.name}: {ends}
                    <button type="button" class="plain" aria-label={`Take the mark of ${b.name} away`} onClick={() => set({ brush: unbrushed(view.brush, b.name) })}>×</button></span>;
            })}
            {view.brush.length > 0 && <span>{inside.size} of {count(rows.length, "trial")} within</span>}
            {names.length > seenNames.size && <span>{count(names.length - seenNames.size, "more hyperparameter varies", "more hyperparameters vary")}</span>}
            {!names.length && <span>No hyperparameter varies between the trials.</span>}
            <span class="row push"><button type="button" title="What lies within all marks, with every hyperparameter that varies" onClick={save}>CSV</button><PictureButtons name={`experiment_${exp.id}_hyperparameters`}
                of={() => parallelPicture(chart, `${shown(exp.name)} #${exp.id}: ${count(rows.length, "trial")}`)} /></span>
        </footer>
    </section>;
}

export function ExperimentCharts({ seen }: { seen: Seen }) {
    const space = useSpace(seen);
    return <div class="pair">
        <CurvesPanel seen={seen} inside={space.inside} />
        {seen.trials.length > 1 && <ParallelPanel seen={seen} {...space} />}
    </div>;
}
