/* One trial: its curves, what it was made of, its checkpoints and what happened to it. */
import { useEffect, useMemo, useRef } from "preact/hooks";
import { ApiError, call } from "../../api/client";
import { declared, flat } from "../../charts/axes";
import { Curves } from "../../charts/curves";
import { curvesPicture, X_WORDS, type Shape } from "../../charts/curves_picture";
import { colourOf, dashesOf } from "../../charts/palette";
import { PictureButtons } from "../../charts/picture";
import { smooth } from "../../charts/smooth";
import { expQuery, expView, X_AXES, type ExpView, type XAxis } from "../../state/address";
import { useLive } from "../../state/live";
import { may, maySomewhere, ofExperiment } from "../../state/may";
import { isWhole, limitOf } from "../../state/part";
import { navigate, path, query } from "../../state/router";
import { confirm } from "../../ui/talk/confirm";
import { isDark } from "../../ui/dark";
import { count, number, value } from "../../ui/words/format";
import { Name } from "../../ui/words/name";
import "../../ui/parts.css";
import { isTerminal, State } from "../../ui/state";
import { between, duration, full } from "../../ui/words/time";
import { toast } from "../../ui/talk/toasts";
import { CheckpointTable, COLLECTED_MS } from "./checkpoints";
import { UnknownAxis } from "../experiment/charts";
import { epochMetric } from "../experiment/epochs";
import { askMetrics, lost, metricId, points, starOf, stillThere, type Metric, type Trial } from "../experiment/data";
import { KeptSeries } from "../experiment/kept_series";
import { WholeCsv } from "../experiment/whole";
import { Problem } from "../problem";
import { TrialProfile } from "./profile";
import { TrialReports } from "./reports";
import { SiblingLinks } from "./siblings";
import { TrialTimeline } from "./timeline";
import { WhyLine } from "../cluster/why";

const LIVE_MS = 1000, NAMES_MS = 5000, METRICS_MOST = 12;
const NONE: Metric[] = []; // one and the same, as what is drawn of it is kept
const AT = { metrics: "Metrics", hyperparameters: "Hyperparameters", profile: "Profile", timeline: "Timeline", checkpoints: "Checkpoints" } as const;

/* "m" of the address: the chosen metrics, one after the other. None chosen: the validation's, else all. */
function chosenOf(view: ExpView, metrics: Metric[]): string[] {
    const ids = metrics.map(metricId);
    if (view.metric) return view.metric.split("|").filter(Boolean).slice(0, METRICS_MOST);
    const validation = metrics.filter((m) => m.group === "validation").map(metricId);
    return (validation.length ? validation : ids).slice(0, 4);
}

function MetricChoice({ chosen, metrics, set }: { chosen: string[]; metrics: Metric[]; set: (ids: string[]) => void }) {
    return <details class="quiet-box"><summary>{chosen.length} of {count(metrics.length, "metric")}</summary>
        <ul class="choices">{metrics.map((m) => {
            const id = metricId(m);
            return <li key={id}><label><input type="checkbox" checked={chosen.includes(id)}
                onChange={() => set(chosen.includes(id) ? chosen.filter((c) => c !== id) : [...chosen, id])} /> {id}</label></li>;
        })}</ul></details>;
}

function TrialCurves({ trial, metrics, best, ended, config, searcherMetric }: { trial: Trial; metrics: Metric[]; best: Trial["bestCheckpoint"]; ended: boolean; config: Record<string, unknown> | null; searcherMetric: string }) {
    const view = expView(query.value.toString());
    const set = (change: Partial<ExpView>) => navigate(path.value + expQuery({ ...view, ...change }), true);
    const chosen = chosenOf(view, metrics);
    const zoom = view.x === "batches" && view.zoom ? view.zoom : null, epochsOf = (m: string) => (view.x === "epochs" ? epochMetric(metrics, m) : null);
    const kept = useRef(new KeptSeries()).current, asked = [...new Set([...chosen, ...chosen.flatMap((m) => epochsOf(m) ?? [])])];
    const live = useLive(`curves of ${trial.id}`, `${asked.join("|")} ${zoom} ${ended}`,
        async (s) => ({ chosen, series: asked.length ? (await kept.ask([trial.id], asked, zoom, ended, s))[0] : undefined }), () => (ended ? null : LIVE_MS));
    const dark = isDark.value, made = best?.totalBatches ?? null;
    const curves = useMemo(() => (live.data?.series ? live.data.chosen : []).flatMap((metric, i, all) => {
        const p = points(live.data!.series!, metric, view.x, config, epochsOf(metric));
        return p.x.length ? [{ id: i, label: metric, points: smooth(p, view.smooth), raw: view.smooth > 0 ? p : null, star: metric.endsWith(`.${searcherMetric}`) ? starOf(live.data!.series!, metric, made, view.x, config, epochsOf(metric), zoom) : null, colour: colourOf(i, dark), dash: dashesOf([...all.keys()]).get(i)!, layer: "plain" as const }] : [];
    }), [live.data, view.x, view.smooth, dark, config, metrics, made, searcherMetric, String(zoom)]);
    const n = curves.reduce((sum, c) => sum + c.points.x.length, 0);
    const ill = chosen.filter((m) => lost([trial], m)), said = ill.length ? `; the newest value of ${ill.join(", ")} is NaN or infinite: not drawn` : "";
    const summary = `${count(curves.length, "curve")}, ${count(n, "point")}${curves.some((c) => c.star) ? "; ★ the best checkpoint" : ""}${said}`;
    const chart: Shape = { curves, x: view.x, logX: view.logX, logY: view.logY, zoom: view.zoom };
    return <section class="panel" aria-label="Curves">
        <header><h2>Curves</h2>
            <MetricChoice chosen={chosen} metrics={metrics} set={(ids) => set({ metric: ids.join("|"), zoom: null })} />
            <label class="quiet">by <select value={view.x} onChange={(e) => set({ x: e.currentTarget.value as XAxis, zoom: null })}>
                {X_AXES.map((x) => <option key={x} value={x}>{X_WORDS[x]}</option>)}</select></label>
            <label class="quiet"><input type="checkbox" checked={view.logY} onChange={(e) => set({ logY: e.currentTarget.checked })} /> log y</label>
            <label class="quiet"><input type="checkbox" checked={view.logX} onChange={(e) => set({ logX: e.currentTarget.checked, zoom: null })} /> log x</label>
            <label class="quiet">smooth <input type="range" min="0" max="0.99" step="0.01" value={view.smooth} onInput={(e) => set({ smooth: Number(e.currentTarget.value) })} /></label>
        </header>
        <Problem error={live.error} what="The curves" />
        <Curves {...chart} onZoom={(z) => set({ zoom: z })} onHover={() => undefined} summary={summary} />
        <footer class="row soft">
            {curves.map((c) => <span key={c.label} class="chip"><span class="dot" style={{ background: c.colour }} />{c.label} {number(c.points.y.at(-1))}</span>)}
            <span class="curve-summary">{summary}</span>
            {!curves.length && (view.x === "records" || view.x === "epochs") && <UnknownAxis />}
            {view.zoom && <button type="button" onClick={() => set({ zoom: null })}>Whole range</button>}
            <span class="row push"><WholeCsv name={`trial_${trial.id}.csv`} whole={{ trials: [trial], metrics: chosen, x: view.x, epochsOf, configOf: () => config }} />
                <PictureButtons name={`trial_${trial.id}`} of={() => curvesPicture(chart, `trial ${trial.id}: ${summary}`)} /></span>
        </footer>
    </section>;
}

/* The metrics that were chosen; none: as many as fit. */
function Reports({ trial, metrics, ended }: { trial: Trial; metrics: Metric[]; ended: boolean }) {
    const view = expView(query.value.toString());
    const all = metrics.map(metricId), ids = view.metric ? chosenOf(view, metrics).filter((id) => all.includes(id)) : all.slice(0, METRICS_MOST);
    const set = (sort: string[]) => navigate(path.value + expQuery({ ...expView(query.value.toString()), sort: sort[0] === "-batches" ? [] : sort }), true);
    return <TrialReports trial={trial.id} ended={ended} ids={ids} of={all.length} sort={view.sort} set={set} />;
}

function Hyperparameters({ trial, config }: { trial: Trial; config: Record<string, unknown> | null }) {
    const all = Object.entries(flat(trial.hparams)).sort(([a], [b]) => (a < b ? -1 : 1)), d = declared(config?.["hyperparameters"]);
    return <section class="panel" aria-label="Hyperparameters"><h2>Hyperparameters</h2>
        {all.length ? <table class="grid"><thead><tr><th scope="col">name</th><th scope="col">value</th><th scope="col">searched</th></tr></thead>
            <tbody>{all.map(([name, v]) => <tr key={name}><td class="text">{name}</td><td class="text" title={String(v)}>{value(v)}</td>
                <td class="soft">{d[name]?.type && d[name].type !== "const" ? d[name].type : ""}</td></tr>)}</tbody></table> : <p class="soft">It has none.</p>}
    </section>;
}

function Kill({ trial, again }: { trial: Trial; again: () => void }) {
    const kill = async () => {
        if (!await confirm("Kill this trial? What was trained since its last checkpoint is lost.", "Kill", `det trial kill ${trial.id}`)) return;
        try {
            await call("POST /api/v1/trials/{id}/kill", { path: { id: trial.id } });
            again();
        } catch (e) {
            if (!(e instanceof ApiError)) throw e;
            toast(`kill: ${e.message}`, true);
        }
    };
    return <button type="button" onClick={() => void kill()}>Kill</button>;
}

/* An address may name a part of the page, which is brought into sight once. */
function useAt(): void {
    const at = query.value.get("at") ?? "";
    useEffect(() => document.querySelector(`main section[aria-label="${AT[at as keyof typeof AT] ?? "none"}"]`)?.scrollIntoView(), [at]);
}

function Loaded({ trial, again }: { trial: Trial; again: () => void }) {
    const id = String(trial.id), ended = isTerminal(trial.state);
    const exp = useLive(`experiment of ${id}`, "", async (signal) =>
        (await call("GET /api/v1/experiments/{experimentId}", { path: { experimentId: trial.experimentId }, signal })).experiment, () => null);
    const of = exp.data ? ofExperiment(exp.data) : {};
    const checkpoints = useLive(`checkpoints of ${id}`, `${ended} ${isWhole()}`, (signal) => call("GET /api/v1/trials/{id}/checkpoints",
        { path: { id }, query: { sortByAttr: "SORT_BY_END_TIME", orderBy: "ORDER_BY_DESC", limit: limitOf(isWhole()) }, signal }), () => (ended ? COLLECTED_MS : 3000));
    const names = useLive(`metrics of ${id}`, String(ended), (s) => askMetrics([trial.experimentId], s), () => (ended ? null : NAMES_MS)), metrics = names.data ?? NONE;
    const best = stillThere(trial.bestCheckpoint ?? null, checkpoints.data?.checkpoints ?? []), isGone = best !== (trial.bestCheckpoint ?? null);
    useEffect(() => { if (isGone) again(); }, [isGone]); // another is the best now
    useAt();
    return <>
        <div class="head">
            <h1>Trial {id}</h1><State state={trial.state} />
            <span>of <a href={`/det/experiments/${trial.experimentId}`}>{exp.data ? <Name text={exp.data.name} /> : "experiment"} #{trial.experimentId}</a></span>
            <SiblingLinks trial={trial} ended={ended} />
            <span class="row push"><a href={`/det/trials/${id}/logs`}>Logs</a>{trial.checkpointCount > 0 && maySomewhere("create") && <a class="button" href={`/det/experiments/new?from=${trial.experimentId}&trial=${id}`} title="A new experiment that begins with the weights of its latest checkpoint">Warm start</a>}{!ended && exp.data && !exp.data.unmanaged && may("operate", of) && <Kill trial={trial} again={again} />}</span>
        </div>
        <p class="facts soft"><span>{count(trial.totalBatchesProcessed, "batch", "batches")}</span>
            {typeof trial.searcherMetricValue === "number" && <span>best {exp.data?.searcherMetric} <strong>{number(trial.searcherMetricValue)}</strong></span>}
            {best && <span>best checkpoint at batch {number(best.totalBatches)}</span>}
            <span>{count(trial.restarts, "restart")}</span><span>started {full(trial.startTime)}</span>
            <span>{duration(between(trial.startTime, trial.endTime, Date.now()))}</span></p>
        {(!ended || trial.state === "STATE_ERROR") && <WhyLine what="trials" id={id} experiment={trial.experimentId} of={of} again={again} ended={ended} onlyWaiting={!ended} />}
        <div class="pair"><TrialCurves trial={trial} metrics={metrics} best={best} ended={ended} config={exp.data?.config ?? null} searcherMetric={exp.data?.searcherMetric ?? ""} /><Hyperparameters trial={trial} config={exp.data?.config ?? null} /></div>
        <Reports trial={trial} metrics={metrics} ended={ended} />
        <TrialTimeline id={id} ended={ended} />
        <TrialProfile id={id} ended={ended} />
        <section class="panel stacked" aria-label="Checkpoints"><h2>Checkpoints</h2><CheckpointTable live={checkpoints} best={best?.uuid ?? null} of={of} /></section>
    </>;
}

export function TrialPage({ id = "" }: Record<string, string>) {
    const live = useLive(`trial ${id}`, "", async (signal) => (await call("GET /api/v1/trials/{trialId}", { path: { trialId: id }, signal })).trial,
        (t) => (isTerminal(t.state) ? COLLECTED_MS : LIVE_MS)); // what is not kept goes after its end
    if (live.data) return <Loaded trial={live.data} again={live.again} />;
    return <><h1>Trial {id}</h1>{live.error ? <Problem error={live.error} what="The trial" /> : <p class="soft">Asking…</p>}</>;
}
