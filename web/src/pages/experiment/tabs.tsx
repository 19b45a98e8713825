/* What lies below an experiment's pictures, one part at a time. */
import { useComputed } from "@preact/signals";
import { useEffect, useMemo, useState } from "preact/hooks";
import { call } from "../../api/client";
import { goesWith, importancePicture } from "./importance_picture";
import { PictureButtons } from "../../charts/picture";
import { weighable } from "../../charts/work/importance";
import { colourOf } from "../../charts/palette";
import { useWork, work } from "../../charts/work/working";
import { expQuery } from "../../state/address";
import { useLive } from "../../state/live";
import { may, ofExperiment } from "../../state/may";
import { isWhole, limitOf } from "../../state/part";
import { path } from "../../state/router";
import { Choices } from "../../ui/table/choices";
import { isDark } from "../../ui/dark";
import { count, number, value } from "../../ui/words/format";
import { shown } from "../../ui/words/name";
import { Notes } from "../../ui/notes/markdown_notes";
import { csv, saveAs } from "../../ui/words/save";
import { sorted } from "../../ui/table/sort";
import { SortHead } from "../../ui/table/sort_head";
import { lazy } from "../../ui/lazy";
import { bare, isTerminal, State } from "../../ui/state";
import { between, duration } from "../../ui/words/time";
import { CheckpointTable, COLLECTED_MS } from "../trial/checkpoints";
import { TrialLog } from "../trial/logs";
import type { Seen } from "./experiment";
import { toggled, useSpace } from "./charts";
import { CodeTab } from "./code";
import { searchOf, type Experiment, type Trial } from "./data";
import { GroupTable } from "./group_table";
import { groupsOf } from "./groups";
import { HeatTab, ScatterTab } from "./pairs";
import { Rungs } from "./rungs";
import { configWithoutSecrets, secretsOf } from "./secrets";

const ROWS = 200;

interface Column { id: string; title: string; of: (t: Trial) => number | string; cell: (t: Trial) => string }

function columns(seen: Seen, names: string[], values: Map<number, Record<string, unknown>>): Column[] {
    const metric = searchOf(seen.exp).metric, now = Date.now();
    const hp = (name: string): Column => ({
        id: `hp.${name}`, title: name, cell: (t) => value(values.get(t.id)?.[name]),
        of: (t) => { const v = values.get(t.id)?.[name]; return typeof v === "number" ? v : value(v); },
    });
    const spent = (t: Trial) => between(t.startTime, t.endTime, now) ?? -1;
    return [
        ...names.map(hp),
        { id: "batches", title: "batches", of: (t) => t.totalBatchesProcessed, cell: (t) => number(t.totalBatchesProcessed) },
        { id: "best", title: `best ${metric}`, of: (t) => (t.searcherMetricValue as number | null) ?? NaN, cell: (t) => number(t.searcherMetricValue as number | null) },
        { id: "restarts", title: "restarts", of: (t) => t.restarts, cell: (t) => String(t.restarts) },
        { id: "duration", title: "duration", of: spent, cell: (t) => duration(between(t.startTime, t.endTime, now)) },
    ];
}

function Head({ seen, all }: { seen: Seen; all: Column[] }) {
    return <thead><tr>
        <th scope="col"><span class="soft">chosen</span></th><th scope="col">trial</th><th scope="col">state</th>
        {all.map((c) => <SortHead key={c.id} id={c.id} title={c.title} sort={seen.view.sort} set={(sort) => seen.set({ sort })}>{c.title}</SortHead>)}
    </tr></thead>;
}

function TrialRow({ t, seen, all }: { t: Trial; seen: Seen; all: Column[] }) {
    const isChosen = seen.view.trials.includes(t.id), isHover = useComputed(() => seen.hover.value === t.id);
    const classes = `${isHover.value ? "hover" : ""} ${isChosen ? "chosen" : ""}`.trim();
    return <tr class={classes} data-trial={t.id} onMouseEnter={() => seen.setHover(t.id)} onMouseLeave={() => seen.setHover(null)}>
        <td class="nowrap"><input type="checkbox" checked={isChosen} aria-label={`Choose trial ${t.id}`} onChange={() => seen.set({ trials: toggled(seen.view.trials, t.id) })} />{" "}
            <span class="dot" style={{ background: colourOf(t.id, isDark.value) }} /></td>
        <td data-label="trial"><a href={`/det/trials/${t.id}`} onFocus={() => seen.setHover(t.id)} onBlur={() => seen.setHover(null)}>{t.id}</a>{" "}<a class="soft" href={`/det/trials/${t.id}/logs`} title={`Log of trial ${t.id}`}>log</a></td>
        <td data-label="state"><State state={t.state} /></td>
        {all.map((c) => <td key={c.id} data-label={c.title} title={String(c.of(t))}>{c.cell(t)}</td>)}
    </tr>;
}

function TrialList({ seen, space }: { seen: Seen; space: ReturnType<typeof useSpace> }) {
    const { rows, names, inside } = space;
    const [most, setMost] = useState(ROWS);
    const all = columns(seen, names, new Map(rows.map((r) => [r.id, r.values])));
    const listed = sorted(seen.trials.filter((t) => inside.has(t.id)), all, seen.view.sort);
    const save = () => saveAs(`experiment_${seen.exp.id}_trials.csv`, csv(["trial", "state", ...all.map((c) => c.title)], listed.map((t) => [t.id, t.state, ...all.map((c) => c.of(t))])));
    return <>
        <p class="row"><span>{listed.length < seen.trials.length ? `${listed.length} of ${count(seen.trials.length, "trial")} within the marks` : count(listed.length, "trial")}</span>
            {seen.view.trials.length > 0 && <button type="button" onClick={() => seen.set({ trials: [] })}>Choose none</button>}
            {seen.view.trials.length > 1 && <a class="button" href={`/det/compare?t=${seen.view.trials.join(",")}`}>Compare</a>}
            <button type="button" class="push" onClick={save}>CSV</button></p>
        <div class="wide"><table class="grid cards" aria-label="Trials">
            <Head seen={seen} all={all} />
            <tbody>{listed.slice(0, most).map((t) => <TrialRow key={t.id} t={t} seen={seen} all={all} />)}</tbody>
        </table></div>
        {listed.length > most && <button type="button" onClick={() => setMost(most + ROWS)}>{Math.min(ROWS, listed.length - most)} more of {listed.length}</button>}
    </>;
}

function ExperimentNotes({ exp, again }: { exp: Experiment; again: () => void }) {
    const ask = async () => (await call("GET /api/v1/experiments/{experimentId}", { path: { experimentId: exp.id } })).experiment.notes;
    return <Notes isMine={may("edit", ofExperiment(exp))} draft={`notes.${exp.id}`} notes={exp.notes} ask={ask} again={again}
        save={(notes) => call("PATCH /api/v1/experiments/{experiment.id}", { path: { "experiment.id": exp.id }, body: { id: exp.id, notes } })} />;
}

function TrialsTab({ seen }: { seen: Seen }) {
    const space = useSpace(seen), { rows, names, inside } = space, { metric, smallerIsBetter } = searchOf(seen.exp), by = seen.view.group;
    return <>
        <div class="row"><Choices name="Group by" summary={by.join(", ") || "nothing"} ticked={by} set={(group) => seen.set({ group })}
            of={[...new Set([...names, ...by])].map((n) => ({ value: n, text: n }))} /></div>
        {by.length ? <GroupTable seen={seen} metric={metric} groups={groupsOf(rows.filter((r) => inside.has(r.id)), by, metric, smallerIsBetter)} />
            : <TrialList seen={seen} space={space} />}
    </>;
}

function ImportanceTab({ seen }: { seen: Seen }) {
    const { rows, axes } = useSpace(seen), metric = axes[axes.length - 1]!.name;
    const job = useMemo(() => weighable(axes.slice(0, -1), rows.map((r) => r.values), metric), [rows, axes]), found = useWork(job, (j) => work("weighed", j));
    const all = [...(found?.answer ?? [])].sort((a, b) => Math.abs(b.weight || 0) - Math.abs(a.weight || 0));
    const few = Math.min(...all.map((i) => i.n));
    const save = () => saveAs(`experiment_${seen.exp.id}_importance.csv`, csv(["hyperparameter", "weight", "trials"], all.map((i) => [i.name, i.isSigned ? i.weight : Math.abs(i.weight), i.n])));
    if (axes.length < 2) return <p>No hyperparameter varies between the trials.</p>;
    if (!all.length) return <p class="soft" role="status">Weighing…</p>;
    return <>
        <p class="row"><span class="soft">How strongly the rank of {metric} goes with the rank of a hyperparameter (Spearman; of categories: eta). 1 is entirely, 0 not at all.</span>
            <span class="row push"><button type="button" onClick={save}>CSV</button>
                <PictureButtons name={`experiment_${seen.exp.id}_importance`} of={() => importancePicture(all, metric, `${shown(seen.exp.name)} #${seen.exp.id}: importance for ${metric}, of 0 to 1`)} /></span></p>
        {few < 20 && <p class="why">It rests on {count(few, "trial")} only: under 20, chance alone makes large numbers.</p>}
        <div class="wide"><table class="grid cards" aria-label="Importance"><thead><tr><th scope="col">hyperparameter</th><th scope="col">weight</th><th scope="col">a larger one goes with</th><th scope="col">trials</th></tr></thead>
            <tbody>{all.map((i) => <tr key={i.name}><td class="text" data-label="hyperparameter">{i.name}</td>
                <td data-label="weight"><meter min={0} max={1} value={Math.abs(i.weight || 0)} aria-label={`Weight of ${i.name}`} /> {Number.isNaN(i.weight) ? "cannot be told" : number(Math.abs(i.weight), 2)}</td>
                <td data-label="a larger one">{goesWith(i, metric)}</td><td data-label="trials">{i.n}</td></tr>)}</tbody></table></div>
    </>;
}

function CheckpointsTab({ seen }: { seen: Seen }) {
    const id = String(seen.exp.id), ended = isTerminal(seen.exp.state);
    const live = useLive(`exp checkpoints ${id}`, `${ended} ${isWhole()}`, (signal) => call("GET /api/v1/experiments/{id}/checkpoints",
        { path: { id }, query: { sortByAttr: "SORT_BY_END_TIME", orderBy: "ORDER_BY_DESC", limit: limitOf(isWhole()) }, signal }), () => (ended ? COLLECTED_MS : 3000));
    return <CheckpointTable live={live} withTrial best={seen.best?.uuid ?? null} of={ofExperiment(seen.exp)} />;
}

/* A configuration's text without what signs in to a registry; undefined: not known yet, null: it cannot be hidden. */
function useHidden(text: string, isNeeded: boolean): string | null | undefined {
    const [got, setGot] = useState<{ of: string; text: string | null } | null>(null);
    useEffect(() => {
        if (!isNeeded) return;
        let isOver = false;
        const tell = (hidden: string | null) => { if (!isOver) setGot({ of: text, text: hidden }); };
        import("./hide").then(({ hiddenText }) => tell(hiddenText(text)), () => tell(null));
        return () => { isOver = true; };
    }, [text, isNeeded]);
    return isNeeded ? (got?.of === text ? got.text : undefined) : text;
}

/* What was submitted, as it was written, but for what signs in to a registry: that is shown to who asks for it. */
function ConfigTab({ seen }: { seen: Seen }) {
    const { exp } = seen, secrets = secretsOf(exp.config), [isBare, setBare] = useState(false);
    const hidden = useHidden(exp.originalConfig, secrets.length > 0), text = isBare ? exp.originalConfig : hidden;
    return <section class="panel" aria-label="Configuration">
        <header><h2>As it was submitted</h2><span class="row push">
            {secrets.length > 0 && <label class="quiet"><input type="checkbox" checked={isBare} onChange={() => setBare(!isBare)} /> show the registry's secrets</label>}
            <button type="button" {...(hidden !== exp.originalConfig ? { title: "With its secrets" } : {})} onClick={() => saveAs(`experiment_${exp.id}.yaml`, exp.originalConfig, "text/yaml")}>Download</button></span></header>
        {text === undefined ? <p class="soft">Loading…</p> : text === null ? <p class="soft">It could not be read so as to hide in it what signs in to a registry.</p> : <pre class="text" tabIndex={0}>{text}</pre>}
        <details><summary>With all that it left out</summary><pre class="text" tabIndex={0}>{JSON.stringify(isBare ? exp.config : configWithoutSecrets(exp.config), null, 2)}</pre></details>
    </section>;
}

const LOGS_MOST = 500; // of a choice among them

/* Whose log is shown where nobody chose: of what runs, else of what failed, else of the first. */
export function logOf(trials: readonly Pick<Trial, "id" | "state">[]): number {
    const first = (...states: string[]) => trials.find((t) => states.includes(t.state));
    return (first("STATE_RUNNING", "STATE_STARTING") ?? first("STATE_ERROR") ?? trials[0])?.id ?? 0;
}

/* The log of one of its trials. Whose is in the address, also where nobody chose: it stays the same while others begin and end. */
function LogsTab({ seen }: { seen: Seen }) {
    const { trials, view } = seen, id = view.log || logOf(trials);
    useEffect(() => { if (!view.log && id) seen.set({ log: id }); }, [view.log, id]);
    if (!id) return <p class="soft">No trial has begun yet.</p>;
    const choice = trials.slice(0, LOGS_MOST), chosen = trials.find((t) => t.id === id);
    return <TrialLog key={id} id={String(id)} isBeside head={<>
        <label class="quiet">Log of <select value={String(id)} onChange={(e) => seen.set({ log: Number(e.currentTarget.value) })}>
            {(chosen && !choice.includes(chosen) ? [...choice, chosen] : choice).map((t) => <option key={t.id} value={t.id}>trial {t.id}: {bare(t.state).toLowerCase()}</option>)}</select></label>
        {trials.length > LOGS_MOST && <span class="soft">The first {LOGS_MOST} of {count(trials.length, "trial")}; each has a link in the tab <a href={path.value + expQuery({ ...view, tab: "trials" })}>trials</a>.</span>}
        <a href={`/det/trials/${id}/logs`}>on a page of its own</a></>} />;
}

const TimelineTab = lazy<{ seen: Seen }>(async () => (await import("./timeline")).TimelineTab);

export function ExperimentTab({ seen }: { seen: Seen }) {
    switch (seen.view.tab) {
    case "scatter": return <ScatterTab seen={seen} />;
    case "heat": return <HeatTab seen={seen} />;
    case "importance": return <ImportanceTab seen={seen} />;
    case "rungs": return <Rungs seen={seen} />;
    case "checkpoints": return <CheckpointsTab seen={seen} />;
    case "config": return <ConfigTab seen={seen} />;
    case "logs": return <LogsTab seen={seen} />;
    case "timeline": return <TimelineTab seen={seen} />;
    case "code": return <CodeTab seen={seen} />;
    case "notes": return <ExperimentNotes exp={seen.exp} again={seen.again} />;
    default: return <TrialsTab seen={seen} />;
    }
}
