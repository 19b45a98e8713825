/* What happened to a trial: bars for what lasted, marks for moments, a line a kind; the same as a table below. */
import { call, type Messages } from "../../api/client";
import { Canvas } from "../../charts/canvas";
import { colourOf } from "../../charts/palette";
import type { Pen } from "../../charts/pen";
import { PictureButtons } from "../../charts/picture";
import { extent, scale, toPixel } from "../../charts/scales";
import { ticks } from "../../charts/ticks";
import { useLive } from "../../state/live";
import { cssColour, isDark } from "../../ui/dark";
import { count } from "../../ui/words/format";
import { duration, full } from "../../ui/words/time";
import { Problem } from "../problem";

type Event = Messages["TrialTimelineEvent"];
const LEFT = 110, LINE = 20, BELOW = 24, LEAST = 3;

/* Kinds in the order in which they came first. */
export function kinds(events: Event[]): string[] {
    return [...new Set(events.map((e) => e.kind))];
}

const LASTING = ["queued", "placed", "kill", "preempted"];

/* Seconds since the first event: what goes on began at its time; what is told of with how long it took had ended then. */
export function spanOf(e: Pick<Event, "kind" | "offset" | "duration" | "ongoing">): [number, number] {
    const took = (e.duration as number | null) ?? 0;
    return e.ongoing || LASTING.includes(e.kind) ? [e.offset, e.offset + took] : [Math.max(0, e.offset - took), e.offset];
}

function draw(ctx: Pen, width: number, events: Event[]): void {
    const lines = kinds(events), end = Math.max(0.001, extent(events.map((e) => spanOf(e)[1]))[1] || 0);
    const x = scale("linear", 0, end, LEFT, width - 12), dark = isDark.value, bottom = lines.length * LINE;
    ctx.font = "12px system-ui, sans-serif";
    ctx.fillStyle = ctx.strokeStyle = cssColour("--soft");
    for (const t of ticks(x, Math.max(2, Math.floor(width / 110)))) {
        ctx.globalAlpha = 0.4;
        ctx.fillRect(toPixel(x, t), 0, 1, bottom);
        ctx.globalAlpha = 1;
        ctx.fillText(duration(t), Math.min(toPixel(x, t), width - 40), bottom + 16);
    }
    lines.forEach((kind, i) => {
        ctx.fillStyle = cssColour("--text");
        ctx.fillText(kind, 4, i * LINE + 14);
        ctx.fillStyle = colourOf(i, dark);
        for (const e of events) {
            if (e.kind !== kind) continue;
            const [from, to] = spanOf(e).map((t) => toPixel(x, t)) as [number, number];
            ctx.fillRect(Math.min(from, to - LEAST), i * LINE + 3, Math.max(LEAST, to - from), LINE - 6);
        }
    });
}

export function TrialTimeline({ id, ended }: { id: string; ended: boolean }) {
    const live = useLive(`timeline ${id}`, String(ended), (signal) => call("GET /api/v1/trials/{id}/timeline", { path: { id }, signal }), () => (ended ? null : 2000));
    const events = live.data?.events ?? [], runs = new Set(events.map((e) => e.runId)).size;
    return <section class="panel stacked" aria-label="Timeline">
        <header><h2>Timeline</h2><span class="soft">{count(events.length, "event")}, {count(runs, "run")}</span>
            {events.length > 0 && <span class="row push"><PictureButtons name={`trial_${id}_timeline`}
                of={() => ({ title: `trial ${id}: timeline`, height: kinds(events).length * LINE + BELOW, draw: (pen, w) => draw(pen, w, events) })} /></span>}</header>
        <Problem error={live.error} what="The timeline" />
        {events.length > 0 && <Canvas height={kinds(events).length * LINE + BELOW} label={`Timeline of trial ${id}: ${kinds(events).join(", ")}`} of={[events]} behind={(pen, w) => draw(pen, w, events)} />}
        <details><summary>As a table</summary><div class="wide"><table class="grid cards" aria-label="Timeline">
            <thead><tr><th scope="col">time</th><th scope="col">run</th><th scope="col">host</th><th scope="col">what</th><th scope="col">took</th><th scope="col">detail</th></tr></thead>
            <tbody>{events.map((e, i) => <tr key={i}><td data-label="time">{full(e.time)}</td><td data-label="run">{e.runId}</td><td data-label="host">{e.node ?? ""}</td>
                <td data-label="what">{e.kind}</td>
                <td data-label="took">{duration(e.duration as number | null)}{e.ongoing ? " …" : ""}</td><td class="text" data-label="detail">{e.detail}</td></tr>)}</tbody></table></div></details>
    </section>;
}
