/* What the trials of an experiment did at which time: states that last, out of the events of each. */
import type { Messages } from "../../api/client";
import { extent } from "../../charts/scales";
import { isTerminal } from "../../ui/state";
import { spanOf } from "../trial/timeline";
import type { Trial } from "./data";

export type Event = Messages["TrialTimelineEvent"];
export const PHASES = ["waiting", "starting", "training", "validating", "checkpointing"] as const;
export type Phase = (typeof PHASES)[number];
/* Milliseconds since the epoch. */
export interface Part { phase: Phase; from: number; to: number; run: number }

const OVER: Partial<Record<string, Phase>> = { validating: "validating", checkpointing: "checkpointing" };
const BEGUN = ["first_batch", "ready", "running"]; // what tells first that a run trains

/* The states of one run, one after the other; `now` ends what goes on. */
function statesOf(events: readonly Event[], run: number, at: (offset: number) => number, now: number): Part[] {
    const of = (...kinds: string[]) => kinds.map((k) => events.find((e) => e.kind === k)).find(Boolean), time = (e: Event | undefined) => (e ? at(e.offset) : NaN);
    const [queued, placed, begun] = [time(of("queued")), time(of("placed")), time(of(...BEGUN))], end = Number.isNaN(time(of("end"))) ? now : time(of("end"));
    const marks: [Phase, number][] = [["waiting", queued], ["starting", placed], ["training", begun]], known = marks.filter(([, t]) => !Number.isNaN(t));
    return known.map(([phase, from], i) => ({ phase, from, to: Math.max(from, known[i + 1]?.[1] ?? end), run }));
}

/* In the order in which they are drawn: what happens while a trial trains lies over it. */
export function partsOf(events: readonly Event[], now: number): Part[] {
    if (!events.length) return [];
    const zero = Date.parse(events[0]!.time) - 1000 * events[0]!.offset, at = (offset: number) => zero + 1000 * offset;
    const runs = [...new Set(events.map((e) => e.runId))];
    const states = runs.flatMap((run) => statesOf(events.filter((e) => e.runId === run), run, at, now));
    const over = events.flatMap((e): Part[] => { const phase = OVER[e.kind], [from, to] = spanOf(e); return phase ? [{ phase, from: at(from), to: at(to), run: e.runId }] : []; });
    return [...states, ...over];
}

/* Seconds in each; what is done while it trains is no training. */
export function spent(parts: readonly Part[]): Record<Phase, number> {
    const sum = (phase: Phase) => parts.reduce((n, p) => n + (p.phase === phase ? (p.to - p.from) / 1000 : 0), 0), validating = sum("validating"), checkpointing = sum("checkpointing");
    return { waiting: sum("waiting"), starting: sum("starting"), training: Math.max(0, sum("training") - validating - checkpointing), validating, checkpointing };
}

/* From when to when, of all of them; there may be more than a call takes arguments. */
export const reach = (all: readonly Part[]): [number, number] => [extent(all.map((p) => p.from))[0], extent(all.map((p) => p.to))[1]];

/* As long as this stays so does what is known of a trial that has ended; one that is continued ends at another time. */
type Ending = Pick<Trial, "id" | "state" | "endTime">;
export const endOf = (t: Ending): string => (isTerminal(t.state) ? `${t.id} ${t.endTime}` : String(t.id));

/* The events of each; of those that have ended they are kept in `known`, and not asked for again. */
export async function eventsOf(trials: readonly Ending[], known: Map<string, Event[]>, ask: (id: number) => Promise<Event[]>): Promise<{ id: number; events: Event[] }[]> {
    return Promise.all(trials.map(async (t) => {
        const events = (isTerminal(t.state) && known.get(endOf(t))) || (await ask(t.id)), run = Math.max(0, ...new Set(events.map((e) => e.runId)));
        if (isTerminal(t.state) && events.some((e) => e.kind === "end" && e.runId === run)) known.set(endOf(t), events);
        return { id: t.id, events };
    }));
}
