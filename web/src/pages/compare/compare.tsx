/* Trials of any experiments side by side: their curves in one picture, and in which hyperparameters and settings they differ. */
import { useMemo, useRef } from "preact/hooks";
import { flat } from "../../charts/axes";
import { Curves } from "../../charts/curves";
import { curvesPicture, X_WORDS, type Shape } from "../../charts/curves_picture";
import type { Curve } from "../../charts/draw";
import { colourOf, dashesOf } from "../../charts/palette";
import { PictureButtons } from "../../charts/picture";
import { smooth } from "../../charts/smooth";
import { X_AXES, type ExpView, type XAxis } from "../../state/address";
import { useLive } from "../../state/live";
import { navigate, path, query } from "../../state/router";
import { isDark } from "../../ui/dark";
import { count, number, value } from "../../ui/words/format";
import { Name, shown } from "../../ui/words/name";
import "../../ui/parts.css";
import { csv, saveAs } from "../../ui/words/save";
import { isTerminal, State } from "../../ui/state";
import { between, duration } from "../../ui/words/time";
import { askSides, compareQuery, compareView, differences, settingsOf, SIDES_MOST, type CompareView, type Difference, type Side } from "./data";
import { epochMetric } from "../experiment/epochs";
import { askMetrics, lostText, metricId, newestOf, points, searchOf } from "../experiment/data";
import { KeptSeries } from "../experiment/kept_series";
import { WholeCsv } from "../experiment/whole";
import { Problem } from "../problem";

const LIVE_MS = 2000, NAMES_MS = 5000;

interface Part { sides: Side[]; view: CompareView; set: (change: Partial<CompareView>) => void; setChart: (change: Partial<ExpView>) => void }

function labelOf(s: Side): string {
    return `trial ${s.trial.id} of ${shown(s.exp.name)}`;
}

function Options({ view, metric, names, setChart }: { view: ExpView; metric: string; names: string[]; setChart: Part["setChart"] }) {
    return <>
        <label class="quiet">Metric <select value={metric} onChange={(e) => setChart({ metric: e.currentTarget.value, zoom: null })}>
            {[...new Set([metric, ...names])].map((m) => <option key={m} value={m}>{m}</option>)}</select></label>
        <label class="quiet">by <select value={view.x} onChange={(e) => setChart({ x: e.currentTarget.value as XAxis, zoom: null })}>
            {X_AXES.map((x) => <option key={x} value={x}>{X_WORDS[x]}</option>)}</select></label>
        <label class="quiet"><input type="checkbox" checked={view.logY} onChange={(e) => setChart({ logY: e.currentTarget.checked })} /> log y</label>
        <label class="quiet"><input type="checkbox" checked={view.logX} onChange={(e) => setChart({ logX: e.currentTarget.checked, zoom: null })} /> log x</label>
        <label class="quiet">smooth <input type="range" min="0" max="0.99" step="0.01" value={view.smooth}
            onInput={(e) => setChart({ smooth: Number(e.currentTarget.value) })} /></label>
    </>;
}

function Pictures({ sides, view, setChart }: Part) {
    const chart = view.chart, ended = sides.every((s) => isTerminal(s.trial.state)), dark = isDark.value;
    const exps = [...new Set(sides.map((s) => s.exp.id))], ids = sides.map((s) => s.trial.id);
    const names = useLive(`compare metrics ${exps}`, String(ended), (s) => askMetrics(exps, s), () => (ended ? null : NAMES_MS));
    const all = (names.data ?? []).map(metricId), own = `validation.${searchOf(sides[0]!.exp).metric}`;
    const metric = chart.metric || (all.length && !all.includes(own) ? all[0]! : own), zoom = chart.x === "batches" ? chart.zoom : null, epochs = chart.x === "epochs" ? epochMetric(names.data ?? [], metric) : null;
    const kept = useRef(new KeptSeries()).current, asked = [...new Set([metric, epochs ?? metric])];
    const live = useLive(`compare ${ids} ${metric}`, `${zoom} ${epochs} ${ended}`, (s) => kept.ask(ids, asked, zoom, ended, s), () => (ended ? null : LIVE_MS));
    const dashes = dashesOf(ids);
    const curves = useMemo(() => (live.data ?? []).flatMap((s): Curve[] => {
        const side = sides.find((o) => o.trial.id === s.trial.id), p = points(s, metric, chart.x, side?.exp.config, epochs), id = s.trial.id;
        return side && p.x.length ? [{ id, label: labelOf(side), points: smooth(p, chart.smooth), raw: chart.smooth > 0 ? p : null, colour: colourOf(id, dark),
            dash: dashes.get(id)!, layer: "plain" }] : [];
    }), [live.data, chart.x, chart.smooth, dark, epochs]);
    const summary = `${metric}: ${count(curves.length, "curve")}, ${count(curves.reduce((n, c) => n + c.points.x.length, 0), "point")}${lostText(sides.map((s) => s.trial), metric)}`;
    const shape: Shape = { curves, x: chart.x, logX: chart.logX, logY: chart.logY, zoom: chart.zoom };
    return <section class="panel" aria-label="Curves">
        <header><h2>Curves</h2><Options view={chart} metric={metric} names={all} setChart={setChart} /></header>
        <Problem error={live.error} what="The curves" />
        <Curves {...shape} summary={summary} onHover={() => undefined}
            onZoom={(z) => setChart({ zoom: z })} onPick={(id) => navigate(`/det/trials/${id}`)} />
        <footer class="row soft"><span class="curve-summary">{summary}</span>
            {chart.zoom && <button type="button" onClick={() => setChart({ zoom: null })}>Whole range</button>}
            <span class="row push"><WholeCsv name={`compare_${metric}.csv`} whole={{ trials: sides.map((s) => s.trial), metrics: [metric], x: chart.x, epochsOf: () => epochs, configOf: (t) => sides.find((s) => s.trial.id === t.id)?.exp.config ?? null }} />
                <PictureButtons name={`compare_${metric}`} of={() => curvesPicture(shape, summary)} /></span></footer>
    </section>;
}

function without(view: CompareView, s: Side): Partial<CompareView> {
    return { trials: view.trials.filter((id) => id !== s.trial.id), experiments: view.experiments.filter((id) => id !== s.exp.id || view.trials.includes(s.trial.id)) };
}

function Heads({ sides, view, set }: Part) {
    return <thead><tr><th scope="col">what</th>{sides.map((s) => <th key={s.trial.id} scope="col" class="side-head">
        <span class="dot" style={{ background: colourOf(s.trial.id, isDark.value) }} /> <a href={`/det/trials/${s.trial.id}`}>trial {s.trial.id}</a>{" "}
        of <a href={`/det/experiments/${s.exp.id}`}><Name text={s.exp.name} /> #{s.exp.id}</a>{" "}
        <button type="button" aria-label={`Leave trial ${s.trial.id} out`} onClick={() => set(without(view, s))}>×</button></th>)}</tr></thead>;
}

/* What is the same is grey, what differs has its value in bold: not the colour alone tells. */
function Rows({ title, of }: { title: string; of: Difference[] }) {
    if (!of.length) return null;
    return <tbody><tr><th scope="rowgroup" colSpan={of[0]!.values.length + 1} class="soft">{title}</th></tr>
        {of.map((d) => <tr key={d.name} class={d.differs ? "differs" : "soft"}><th scope="row"><Name text={d.name} /></th>
            {d.values.map((v, i) => <td key={i} class="text" title={v === undefined ? undefined : shown(String(v))}>
                {d.differs ? <strong><Name text={value(v)} /></strong> : <Name text={value(v)} />}</td>)}</tr>)}</tbody>;
}

/* Of each metric that one of them reported the newest value; the others when pointed at. */
function MetricRows({ sides, all }: { sides: Side[]; all: string[] }) {
    const of = sides.map((s) => newestOf(s.trial));
    return <tbody><tr><th scope="rowgroup" colSpan={sides.length + 1} class="soft">metrics, the newest value</th></tr>
        {all.map((name) => <tr key={name} data-metric={name}><th scope="row"><Name text={name} /></th>
            {of.map((m, i) => { const n = m.get(name); return <td key={i} class="text" title={n && `lowest ${value(n.min)}, highest ${value(n.max)}`}><Name text={value(n?.last)} /></td>; })}</tr>)}</tbody>;
}

function Table(p: Part) {
    const { sides, view, set } = p, now = Date.now();
    const hp = differences(sides.map((s) => flat(s.trial.hparams))), settings = differences(sides.map((s) => settingsOf(s.exp.config)));
    const newest = sides.map((s) => newestOf(s.trial)), metrics = [...new Set(newest.flatMap((m) => [...m.keys()]))].sort();
    const wanted = (d: Difference) => view.isWhole || d.differs, facts: [string, (s: Side) => unknown][] = [
        ["state", (s) => <State state={s.trial.state} />], ["batches", (s) => number(s.trial.totalBatchesProcessed)],
        ["best", (s) => `${number(s.trial.searcherMetricValue as number | null)} ${searchOf(s.exp).metric}`], ["restarts", (s) => s.trial.restarts],
        ["duration", (s) => duration(between(s.trial.startTime, s.trial.endTime, now))]];
    const save = () => saveAs("compare.csv", csv(["what", ...sides.map(labelOf)], [...[...hp, ...settings].map((d) => [d.name, ...d.values]), ...metrics.map((m) => [m, ...newest.map((n) => n.get(m)?.last)])]));
    return <section class="panel stacked" aria-label="Differences">
        <header><h2>Differences</h2>
            <label class="quiet"><input type="checkbox" checked={view.isWhole} onChange={(e) => set({ isWhole: e.currentTarget.checked })} /> also what is the same</label>
            <span class="soft" role="status">{count(hp.filter((d) => d.differs).length, "hyperparameter differs", "hyperparameters differ")}</span>
            <button type="button" class="push" onClick={save}>CSV</button></header>
        <div class="wide" tabIndex={0} role="region" aria-label="Side by side"><table class="grid" aria-label="Side by side">
            <Heads {...p} />
            <tbody>{facts.map(([name, of]) => <tr key={name}><th scope="row">{name}</th>{sides.map((s) => <td key={s.trial.id}>{of(s) as string}</td>)}</tr>)}</tbody>
            {metrics.length > 0 && <MetricRows sides={sides} all={metrics} />}
            <Rows title="hyperparameters" of={hp.filter(wanted)} />
            <Rows title="settings" of={settings.filter(wanted)} />
        </table></div>
    </section>;
}

export function ComparePage() {
    const view = compareView(query.value.toString()), names = `${view.experiments} ${view.trials}`;
    const set = (change: Partial<CompareView>) => navigate(path.value + compareQuery({ ...compareView(query.value.toString()), ...change }), true);
    const live = useLive(`sides ${names}`, "", (s) => askSides(view, s), (all) => (all.every((s) => isTerminal(s.trial.state)) ? null : LIVE_MS));
    const sides = live.data ?? [], part: Part = { sides, view, set, setChart: (change) => set({ chart: { ...view.chart, ...change } }) };
    return <>
        <div class="head"><h1>Side by side</h1><span class="soft">{count(sides.length, "trial")}, at most {SIDES_MOST}; of an experiment its best</span></div>
        <Problem error={live.error} what="What is to be compared" />
        {sides.length > 0 && <><Pictures {...part} /><Table {...part} /></>}
        {live.data && !sides.length && <p>Tick experiments in <a href="/det/experiments">the list</a>, or trials of one, and press Compare.</p>}
    </>;
}
