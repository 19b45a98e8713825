/* The columns of the list: what a cell shows, and what a file of it holds. */
import type { ComponentChildren } from "preact";
import type { Column } from "../../state/list_address";
import { bytes, number, percent } from "../../ui/words/format";
import { Name, shown } from "../../ui/words/name";
import { bare, isTerminal, State } from "../../ui/state";
import { ago, between, duration, full } from "../../ui/words/time";
import { searchOf, type Experiment } from "../experiment/data";
import type { Listed } from "./data";
import { hpKind } from "./hp";
import { metricKind } from "./metrics";

export interface ColumnKind {
    title: string;
    /* CSS pixels. */
    width: number;
    show: (e: Listed, now: number) => ComponentChildren;
    /* The whole of it, for the tooltip. */
    whole?: (e: Listed) => string;
    plain: (e: Listed, now: number) => unknown;
    /* What it can be coloured by: a number, or nothing. */
    heat?: (e: Listed) => unknown;
    /* Whether a lower one is better, by the experiment's own search; undefined: that does not say. */
    isTurned?: (e: Listed) => boolean | undefined;
}

const text = (title: string, width: number, get: (e: Experiment) => string): ColumnKind =>
    ({ title, width, show: (e) => <Name text={get(e)} />, whole: (e) => shown(get(e)), plain: get });
const time = (title: string, get: (e: Experiment) => string | null): ColumnKind =>
    ({ title, width: 110, show: (e, now) => ago(get(e), now), whole: (e) => full(get(e)), plain: get });
const numeral = (title: string, width: number, get: (e: Experiment) => number): ColumnKind => ({ title, width, show: get, plain: get });

function Progress({ e }: { e: Experiment }) {
    if (typeof e.progress !== "number") return null;
    if (isTerminal(e.state)) return <>{percent(e.progress)}</>;
    return <><progress class="list-progress" max={1} value={e.progress} aria-label="Progress" /> {percent(e.progress)}</>;
}

function Labels({ e }: { e: Experiment }) {
    return <span class="labels">{e.labels.map((l) => <span key={l} class="chip"><Name text={l} /></span>)}</span>;
}

function bestOf(e: Experiment): number | undefined {
    return e.bestTrialSearcherMetric as number | undefined; // "NaN" and the infinities are shown as they come
}

function seconds(e: Experiment, now: number): number | null {
    return between(e.startTime, e.endTime, now);
}

export const KINDS: Record<Column, ColumnKind> = {
    id: { title: "ID", width: 70, show: (e) => e.id, plain: (e) => e.id },
    name: { title: "Name", width: 180, show: (e) => <a href={`/det/experiments/${e.id}`}><Name text={e.name || "(no name)"} /></a>,
        whole: (e) => shown(e.name), plain: (e) => e.name },
    state: { title: "State", width: 120, show: (e) => <State state={e.state} />, plain: (e) => bare(e.state) },
    progress: { title: "Progress", width: 130, show: (e) => <Progress e={e} />, plain: (e) => e.progress },
    trials: numeral("Trials", 70, (e) => e.numTrials),
    best: { title: "Best", width: 90, show: (e) => number(bestOf(e)),
        whole: (e) => (bestOf(e) === undefined ? "" : shown(`${searchOf(e).metric} ${bestOf(e)}`)), plain: bestOf, heat: bestOf,
        isTurned: (e) => searchOf(e).smallerIsBetter },
    metric: text("Metric", 140, (e) => searchOf(e).metric),
    searcher: text("Searcher", 130, (e) => searchOf(e).name),
    labels: { title: "Labels", width: 120, show: (e) => <Labels e={e} />, whole: (e) => shown(e.labels.join(", ")),
        plain: (e) => e.labels.join(" ") },
    owner: text("Owner", 100, (e) => e.displayName || e.username),
    pool: text("Pool", 120, (e) => e.resourcePool),
    started: time("Started", (e) => e.startTime),
    ended: time("Ended", (e) => e.endTime),
    duration: { title: "Duration", width: 110, show: (e, now) => duration(seconds(e, now)), plain: (e, now) => seconds(e, now) },
    checkpoints: numeral("Checkpoints", 120, (e) => e.checkpointCount),
    size: { title: "Size", width: 100, show: (e) => bytes(e.checkpointSize), whole: (e) => `${e.checkpointSize} bytes`,
        plain: (e) => Number(e.checkpointSize) },
    description: text("Description", 220, (e) => e.description),
    project: text("Project", 180, (e) => `${e.workspaceName} / ${e.projectName}`),
    forked: { title: "Forked from", width: 120, plain: (e) => e.forkedFrom,
        show: (e) => e.forkedFrom && <a href={`/det/experiments/${e.forkedFrom}`}>{e.forkedFrom}</a> },
    archived: { title: "Archived", width: 100, show: (e) => (e.archived ? "yes" : ""), plain: (e) => e.archived },
};

export interface Shown {
    key: string;
    /* What it is called as a key of the sort. */
    sort: string;
    kind: ColumnKind;
}

/* What tells of the search comes first, its hyperparameters next, and then the rest. */
const OF_THE_SEARCH: readonly Column[] = ["id", "name", "state", "progress", "trials", "best", "metric", "searcher"];

export function shownColumns(columns: readonly Column[], hps: readonly string[], metrics: readonly string[] = []): Shown[] {
    const own = columns.map((c): Shown => ({ key: c, sort: c, kind: KINDS[c] }));
    const at = columns.filter((c) => OF_THE_SEARCH.includes(c)).length;
    return [...own.slice(0, at), ...metrics.map((m): Shown => ({ key: `metric ${m}`, sort: m, kind: metricKind(m) })),
        ...hps.map((n): Shown => ({ key: `hp ${n}`, sort: `hp.${n}`, kind: hpKind(n) })), ...own.slice(at)];
}
