/* One experiment: its search as a picture, its trials, and all else that belongs to it. What is seen is the address. */
import { useSignal, type ReadonlySignal } from "@preact/signals";
import { call } from "../../api/client";
import { expQuery, expView, logQuery, logView, TABS, type ExpView, type Tab } from "../../state/address";
import { useLive, type Live } from "../../state/live";
import { may, ofExperiment } from "../../state/may";
import { navigate, path, query } from "../../state/router";
import { count, number, percent } from "../../ui/words/format";
import { OnlyLook, OWNER } from "../../ui/look";
import { Name } from "../../ui/words/name";
import { isTerminal, State } from "../../ui/state";
import "../../ui/parts.css";
import { between, duration, full } from "../../ui/words/time";
import { ExperimentActions } from "./actions";
import { askBestCheckpoint, askMetrics, askTrials, bestOf, trialsEvery, metricId, searchOf, type Checkpoint, type Experiment, type Metric, type Trial } from "./data";
import { ExperimentCharts } from "./charts";
import { ExperimentTab } from "./tabs";
import { Problem } from "../problem";
import { COLLECTED_MS } from "../trial/checkpoints";
import { WhyLine } from "../cluster/why";

const LIVE_MS = 1000, NAMES_MS = 5000;

export interface Seen {
    exp: Experiment;
    trials: Trial[];
    metrics: Metric[];
    /* The checkpoint that is there with the best value of the searcher's metric. */
    best: Checkpoint | null;
    /* "group.name" of the curves, and the searcher's own metric's plain name. */
    metric: string;
    view: ExpView;
    set: (change: Partial<ExpView>) => void;
    /* The trial that is pointed at. Only what reads it is drawn again as the pointer moves. */
    hover: ReadonlySignal<number | null>;
    setHover: (id: number | null) => void;
    again: () => void;
}

/* What a log beside it is filtered by stays, and the line that is pointed to while it is the same log. */
export function changed(view: ExpView, change: Partial<ExpView>, log: string, hash: string): string {
    const is = { ...view, ...change }, beside = expQuery(is), isSame = view.tab === "logs" && (!view.log || view.log === is.log);
    return is.tab === "logs" ? logQuery(logView(log, isSame ? hash : ""), beside) : beside;
}

function setView(view: ExpView, change: Partial<ExpView>): void {
    navigate(path.value + changed(view, change, query.value.toString(), location.hash), true);
}

/* The searcher's metric where it was reported, else the first that was. */
function metricOf(view: ExpView, exp: Experiment, metrics: Metric[]): string {
    if (view.metric.includes(".")) return view.metric;
    const name = view.metric || searchOf(exp).metric;
    const found = metrics.find((m) => m.group === "validation" && m.name === name) ?? metrics.find((m) => m.name === name);
    return metricId(found ?? (metrics.length && !view.metric ? metrics[0]! : { group: "validation", name }));
}

function Title({ exp, trials, best: checkpoint, view }: Pick<Seen, "exp" | "trials" | "best" | "view">) {
    const { smallerIsBetter, metric } = searchOf(exp), best = bestOf(trials, smallerIsBetter);
    const running = trials.filter((t) => t.state === "STATE_RUNNING" || t.state === "STATE_STARTING").length;
    const queued = trials.filter((t) => t.state === "STATE_QUEUED").length;
    return <p class="facts">
        <span>{count(trials.length, "trial")}{running ? `, ${running} running` : ""}{queued ? `, ${queued} queued` : ""}</span>
        {best && <span>best {metric} <strong title={String(best.searcherMetricValue)}>{number(best.searcherMetricValue as number)}</strong>{" "}
            <a href={`/det/trials/${best.id}`}>trial {best.id}</a></span>}
        {checkpoint && <span>best checkpoint <a href={path.value + expQuery({ ...view, tab: "checkpoints" })} title={checkpoint.uuid}>{checkpoint.uuid.slice(0, 8)}</a>{" "}
            ({number(checkpoint.training.searcherMetric as number | null)}, trial {checkpoint.training.trialId})</span>}
        <span class="soft">{exp.username} · {exp.resourcePool} · {searchOf(exp).name}</span>
        <span>in <a href={`/det/projects/${exp.projectId}`}><Name text={`${exp.workspaceName} / ${exp.projectName}`} /></a></span>
        {exp.forkedFrom && <span>forked from <a href={`/det/experiments/${exp.forkedFrom}`}>experiment {exp.forkedFrom}</a></span>}
        {exp.startTime && <span class="soft">started {full(exp.startTime)}, {duration(between(exp.startTime, exp.endTime, Date.now()))}</span>}
        {trials.length === 1 && <a href={`/det/trials/${trials[0]!.id}/logs`}>Log</a>}
    </p>;
}

function Tabs({ view }: { view: ExpView }) {
    return <nav class="tabs" aria-label="Parts of the experiment">{TABS.map((tab: Tab) =>
        <a key={tab} href={path.value + expQuery({ ...view, tab })} aria-current={view.tab === tab ? "page" : undefined}>{tab}</a>)}</nav>;
}

/* Why it waits, was not deleted, or failed: by the first of its trials that did. */
function WhyOf({ exp, trials, again }: Pick<Seen, "exp" | "trials" | "again">) {
    const ended = isTerminal(exp.state), own = { experiment: exp.id, of: ofExperiment(exp), again, ended }, failed = trials.find((t) => t.state === "STATE_ERROR");
    if (!ended || exp.state === "STATE_DELETE_FAILED") return <WhyLine what="experiments" id={String(exp.id)} {...own} onlyWaiting={!ended} />;
    return exp.state === "STATE_ERROR" && failed ? <WhyLine what="trials" id={String(failed.id)} {...own} /> : null;
}

function Loaded({ exp, live }: { exp: Experiment; live: Live<Experiment> }) {
    const id = String(exp.id), ended = isTerminal(exp.state);
    const hover = useSignal<number | null>(null);
    const trials = useLive<Trial[]>(`trials ${id}`, String(ended), (s, told) => askTrials(id, s, told), (all) => (ended ? null : trialsEvery(all.length, LIVE_MS)));
    const metrics = useLive(`metrics ${id}`, String(ended), (s) => askMetrics([exp.id], s), () => (ended ? null : NAMES_MS));
    const best = useLive(`best checkpoint ${id}`, String(ended), (s) => askBestCheckpoint(exp, s), () => (ended ? COLLECTED_MS : NAMES_MS));
    const view = expView(query.value.toString()), again = () => { live.again(); trials.again(); };
    const seen: Seen = {
        exp, trials: trials.data ?? [], metrics: metrics.data ?? [], best: best.data?.checkpoint ?? null, metric: metricOf(view, exp, metrics.data ?? []), view,
        set: (change) => setView(view, change), hover, setHover: (id) => { hover.value = id; }, again,
    };
    return <>
        <div class="head">
            <h1><Name text={exp.name} /> <span class="soft">#{id}</span></h1>
            <State state={exp.state} />{exp.archived && <span class="chip">archived</span>}
            {!ended && typeof exp.progress === "number" && <><progress class="progress" aria-label="Progress" max={1} value={exp.progress} /> {percent(exp.progress)}</>}
            <ExperimentActions exp={exp} again={again} />
        </div>
        {exp.labels.length > 0 && <p class="row">{exp.labels.map((l) => <span key={l} class="chip"><Name text={l} /></span>)}</p>}
        {exp.description && <p><Name text={exp.description} /></p>}
        <Title {...seen} />
        {!may("edit", ofExperiment(exp)) && <OnlyLook what="this experiment" who={OWNER} />}
        <WhyOf {...seen} />
        <Problem error={trials.error} what="The trials" />
        <ExperimentCharts seen={seen} />
        <Tabs view={view} />
        <ExperimentTab seen={seen} />
    </>;
}

export function ExperimentPage({ id = "" }: Record<string, string>) {
    const live = useLive(`experiment ${id}`, "", async (signal) =>
        (await call("GET /api/v1/experiments/{experimentId}", { path: { experimentId: id }, signal })).experiment,
    (e) => (isTerminal(e.state) ? null : LIVE_MS));
    if (live.data) return <><Problem error={live.error} what="The experiment" /><Loaded exp={live.data} live={live} /></>;
    return live.error ? <><h1>Experiment {id}</h1><Problem error={live.error} what="The experiment" /></> : <><h1>Experiment {id}</h1><p class="soft">Asking…</p></>;
}
