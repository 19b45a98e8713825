/* The rungs of a halving search: who stands where, the best first, who went on, who was stopped, and why. */
import { useMemo, useState } from "preact/hooks";
import { call, type Messages } from "../../api/client";
import { PictureButtons } from "../../charts/picture";
import { RungsChart, rungsPicture, type RungColumn, type RungsShape } from "../../charts/rungs";
import { useLive } from "../../state/live";
import { count, number } from "../../ui/words/format";
import { csv, saveAs } from "../../ui/words/save";
import { attempt } from "../../ui/talk/attempt";
import { Grid } from "../../ui/table/grid";
import { shown } from "../../ui/words/name";
import { isTerminal } from "../../ui/state";
import { Problem } from "../problem";
import { toggled, useSpace } from "./charts";
import type { Seen } from "./experiment";

type Bracket = Messages["SearchBracket"];
type Rung = Messages["SearchRung"];
type Place = Rung["trials"][number];
const ALL_TRIALS = 1_000_000; // more than a search may have

const WORDS: Record<string, string> = { WENT_ON: "↑ went on", WAITS: "… waits", STOPPED: "■ stopped", TOP: "★ at the top", FAILED: "✕ failed" };

export const standing = (state: string | undefined): string => WORDS[state ?? ""] ?? state ?? "";

/* Why one that went on did: where it stood in the rung that it left. The searcher's own words are of the rung where a trial is now. */
export function wentOn(r: Pick<Rung, "validated" | "wentOn">, place: number, divisor: number): string {
    const early = place > Math.ceil(r.validated / divisor) ? "; it was among the best when fewer trials had come this far" : "";
    return `it stands at place ${place} of the ${r.validated} that have come here; about one in ${number(divisor)} goes on, ${r.wentOn} so far${early}`;
}

/* Asked when it is wanted: the master plays the whole search for it. */
function Why({ id, known }: { id: number; known: string }) {
    const live = useLive(`why trial ${id}`, "", (signal) => call("GET /api/v1/trials/{id}/why", { path: { id }, signal }), () => null);
    if (known) return <>{known}{live.data?.text && <>. Now: {shown(live.data.text)}</>}</>;
    if (live.error) return <span class="error">{live.error.message}</span>;
    return <>{live.data ? shown(live.data.text) : "Asking…"}</>;
}

function RungPanel({ r, bracket, unit, metric, divisor, seen }: { r: Rung; bracket: number; unit: string; metric: string; divisor: number; seen: Seen }) {
    const places = r.trials as Place[], at = new Map(places.map((p, i) => [p, i + 1]));
    const [openId, setOpen] = useState<number | null>(null), open = places.find((p) => p.trialId === openId);
    return <section class="panel close" aria-label={`Rung ${r.rung} of bracket ${bracket}`}>
        <h3>Rung {r.rung}: {number(r.length)} {unit}</h3>
        <p class="soft">{count(r.validated, "trial")} validated, {r.wentOn} went on{r.training ? `, ${r.training} training` : ""}{r.toCome ? `, ${r.toCome} to come` : ""}</p>
        <Grid name={`Trials of rung ${r.rung} of bracket ${bracket}`} rows={places} pointing={{ at: seen.hover, set: seen.setHover }} keyOf={(p) => p.trialId ?? p.requestId!} none="None has come this far." columns={[
            { head: "trial", cell: (p) => <a href={`/det/trials/${p.trialId}`}>{p.trialId}</a> }, { head: "place", cell: (p) => (typeof p.metric === "number" ? at.get(p) : "") },
            { head: shown(metric), cell: (p) => (typeof p.metric === "number" ? <span title={String(p.metric)}>{number(p.metric)}</span> : "") },
            { head: "what became of it", cell: (p) => (p.state === "WENT_ON" ? <strong>{standing(p.state)}</strong> : standing(p.state)) },
            { head: "", cell: (p) => <button type="button" aria-expanded={openId === p.trialId} aria-label={`Why trial ${p.trialId} ${standing(p.state)}`}
                onClick={() => setOpen(openId === p.trialId ? null : p.trialId!)}>Why</button> }]} />
        {open && <p class="why" role="status">Trial {open.trialId}: <Why key={open.trialId} id={open.trialId!} known={open.state === "WENT_ON" ? wentOn(r, at.get(open)!, divisor) : ""} /></p>}
        {places.length < r.validated && <p class="soft">The best {places.length}; <code>det experiment rungs --trials</code> has all.</p>}
    </section>;
}

/* Only what has a metric has a place in the picture. */
export function columnsOf(b: Pick<Bracket, "rungs">): RungColumn[] {
    return b.rungs.map((r) => ({ rung: r.rung, length: r.length, dots: (r.trials as Place[]).flatMap((p) =>
        (typeof p.metric === "number" && p.trialId ? [{ id: p.trialId, metric: p.metric, state: p.state ?? "" }] : [])) }));
}

/* How many have come how far; the tables below say the same of each trial. */
export function bracketWords(b: Pick<Bracket, "bracket" | "rungs">, metric: string): string {
    const hidden = b.rungs.some((r) => r.trials.length < r.validated) ? "; of each rung only the best are drawn" : "";
    return `Bracket ${b.bracket} by ${metric}: ${b.rungs.map((r) => `rung ${r.rung}: ${r.validated} validated, ${r.wentOn} went on`).join("; ")}${hidden}`;
}

function BracketPicture({ b, unit, metric, seen }: { b: Bracket; unit: string; metric: string; seen: Seen }) {
    const columns = useMemo(() => columnsOf(b), [b]), { inside } = useSpace(seen), { view, exp } = seen, summary = bracketWords(b, metric);
    const chart: RungsShape = { columns, unit, logY: view.logY, inside, chosen: view.trials };
    if (!columns.some((c) => c.dots.length)) return null;
    return <div class="panel">
        <RungsChart {...chart} hover={seen.hover} onHover={seen.setHover} onPick={(id) => seen.set({ trials: toggled(view.trials, id) })} standing={standing} metric={metric} summary={summary} />
        <p class="row soft"><span>● went on, ■ stopped, ▲ at the top, ○ waits, ✕ failed; {shown(metric)} up; a line is a trial's way. Press one to choose its trial.</span>
            <span class="row push"><PictureButtons name={`experiment_${exp.id}_bracket_${b.bracket}`} of={() => rungsPicture(chart, `${shown(exp.name)} #${exp.id}: bracket ${b.bracket}, ${metric}`)} /></span></p>
    </div>;
}

/* Of every trial of every rung what became of it, the best of each first. */
export function rungsCsv(brackets: Bracket[], unit: string, metric: string): string {
    const rows = brackets.flatMap((b) => b.rungs.flatMap((r) => (r.trials as Place[]).map((p, i) =>
        [b.bracket, r.rung, r.length, p.trialId ?? "", typeof p.metric === "number" ? i + 1 : "", p.metric ?? "", (p.state ?? "").toLowerCase().replace("_", " ")])));
    return csv(["bracket", "rung", unit, "trial", "place", metric, "what became of it"], rows as (string | number | null)[][]);
}

function SaveRungs({ id }: { id: string }) {
    const save = () => attempt("Not saved", async () => {
        const { brackets, unit, metric } = await call("GET /api/v1/experiments/{experimentId}/rungs", { path: { experimentId: id }, query: { limit: ALL_TRIALS } });
        saveAs(`experiment_${id}_rungs.csv`, rungsCsv(brackets, unit, metric));
    });
    return <p class="row"><button type="button" class="push" title={`All trials of all rungs; det experiment rungs ${id} --trials`} onClick={() => void save()}>CSV</button></p>;
}

export function Rungs({ seen }: { seen: Seen }) {
    const id = String(seen.exp.id), ended = isTerminal(seen.exp.state);
    const live = useLive(`rungs ${id}`, String(ended), (signal) => call("GET /api/v1/experiments/{experimentId}/rungs",
        { path: { experimentId: id }, query: { limit: 100 }, signal }), () => (ended ? null : 2000));
    if (!live.data) return live.error ? <Problem error={live.error} what="The rungs" /> : <p class="soft">Asking…</p>;
    const { brackets, unit, metric, divisor } = live.data;
    if (!brackets.length) return <p class="soft">This search compares no trials with each other: it has no rungs.</p>;
    return <><SaveRungs id={id} />{brackets.map((b: Bracket) => <section key={b.bracket} aria-label={`Bracket ${b.bracket}`}>
        <h2>Bracket {b.bracket}: {b.made} of {count(b.maxTrials, "trial")} made</h2>
        <BracketPicture b={b} unit={unit} metric={metric} seen={seen} />
        <div class="pair">{b.rungs.map((r) => <RungPanel key={r.rung} r={r} bracket={b.bracket} unit={unit} metric={metric} divisor={divisor} seen={seen} />)}</div>
    </section>)}</>;
}
