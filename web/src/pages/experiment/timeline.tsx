/* Which trial did what when: a line each, and the same in figures. What runs is asked for again; what has ended once. */
import { useRef, useState } from "preact/hooks";
import { call } from "../../api/client";
import { Canvas } from "../../charts/canvas";
import { xText } from "../../charts/curves_picture";
import { colourOf } from "../../charts/palette";
import type { Pen } from "../../charts/pen";
import { PictureButtons } from "../../charts/picture";
import { scale, toPixel } from "../../charts/scales";
import { ticks } from "../../charts/ticks";
import { useLive } from "../../state/live";
import { cssColour, isDark } from "../../ui/dark";
import { isTerminal, State } from "../../ui/state";
import { Grid } from "../../ui/table/grid";
import { count } from "../../ui/words/format";
import { duration } from "../../ui/words/time";
import { Problem } from "../problem";
import type { Trial } from "./data";
import type { Seen } from "./experiment";
import { endOf, eventsOf, partsOf, PHASES, reach, spent, type Event, type Part, type Phase } from "./timeline_data";

const LEFT = 84, LINE = 20, BELOW = 24, LEAST = 1, MORE = 25, LIVE_MS = 5000;
const COLOURS: Record<Phase, number> = { waiting: 9, starting: 1, training: 0, validating: 2, checkpointing: 4 };
interface Row { trial: Trial; parts: Part[]; runs: number }

const colour = (phase: Phase): string => (phase === "waiting" ? cssColour("--idle") : colourOf(COLOURS[phase], isDark.value));

function draw(pen: Pen, width: number, rows: readonly Row[]): void {
    const [from, to] = reach(rows.flatMap((r) => r.parts)), bottom = rows.length * LINE;
    const x = scale("time", from, to, LEFT, width - 12);
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = cssColour("--soft");
    for (const t of ticks(x, Math.max(2, Math.floor(width / 110)), -new Date(from).getTimezoneOffset() || 0)) {
        pen.globalAlpha = 0.4;
        pen.fillRect(toPixel(x, t), 0, 1, bottom);
        pen.globalAlpha = 1;
        pen.fillText(xText("clock", t, to - from), Math.min(toPixel(x, t), width - 72), bottom + 16);
    }
    rows.forEach(({ trial, parts }, i) => {
        pen.fillStyle = cssColour("--text");
        pen.fillText(`trial ${trial.id}`, 4, i * LINE + 14);
        for (const p of parts) {
            pen.fillStyle = colour(p.phase);
            const inner = p.phase === "validating" || p.phase === "checkpointing" ? 6 : 3;
            pen.fillRect(toPixel(x, p.from), i * LINE + inner, Math.max(LEAST, toPixel(x, p.to) - toPixel(x, p.from)), LINE - 2 * inner);
        }
    });
}

/* Of those that have ended what is known stays. */
function useEvents(id: string, trials: readonly Trial[], ended: boolean) {
    const known = useRef(new Map<string, Event[]>()).current;
    return useLive(`timelines of ${id}`, `${trials.map(endOf)} ${ended}`,
        (signal) => eventsOf(trials, known, async (trial) => (await call("GET /api/v1/trials/{id}/timeline", { path: { id: trial }, signal })).events), () => (ended ? null : LIVE_MS));
}

export function TimelineTab({ seen }: { seen: Seen }) {
    const { exp, trials } = seen, [most, setMost] = useState(MORE), ended = isTerminal(exp.state), chosen = trials.filter((t) => seen.view.trials.includes(t.id));
    const of = chosen.length ? chosen : trials, live = useEvents(String(exp.id), of.slice(0, most), ended), now = Date.now();
    const rows = (live.data ?? []).flatMap(({ id, events }): Row[] => {
        const trial = trials.find((t) => t.id === id);
        return trial && events.length ? [{ trial, parts: partsOf(events, now), runs: new Set(events.map((e) => e.runId)).size }] : [];
    });
    const height = rows.length * LINE + BELOW, seconds = (phase: Phase) => ({ head: phase, cell: (r: Row) => <span title={String(spent(r.parts)[phase])}>{duration(spent(r.parts)[phase])}</span> });
    return <section class="panel stacked" aria-label="Timeline">
        <header><h2>Timeline</h2>{PHASES.map((p) => <span key={p} class="chip"><span class="dot" style={{ background: colour(p) }} />{p}</span>)}
            {rows.length > 0 && <span class="row push"><PictureButtons name={`experiment_${exp.id}_timeline`} of={() => ({ title: `${exp.name} #${exp.id}: timeline`, height, draw: (pen, w) => draw(pen, w, rows) })} /></span>}</header>
        <Problem error={live.error} what="The timeline" />
        {chosen.length > 0 && <p class="soft">Of {count(chosen.length, "chosen trial")}. <button type="button" class="plain" onClick={() => seen.set({ trials: [] })}>Choose none</button></p>}
        {rows.length > 0 && <Canvas height={height} label={`Timeline of ${count(rows.length, "trial")}; the table below has it in figures`} of={[live.data]} behind={(pen, w) => draw(pen, w, rows)} />}
        {live.data && <Grid hasFile name="What trials spent their time with" rows={rows} keyOf={(r) => r.trial.id} none="Nothing has happened yet." columns={[
            { head: "trial", cell: (r) => <a href={`/det/trials/${r.trial.id}`}>{r.trial.id}</a> }, { head: "state", cell: (r) => <State state={r.trial.state} /> },
            { head: "runs", cell: (r) => r.runs }, ...PHASES.map(seconds)]} />}
        {of.length > most && <button type="button" onClick={() => setMost(most + MORE)}>{Math.min(MORE, of.length - most)} more of {of.length}</button>}
    </section>;
}
