/*
 * Curves that are asked for again and again: what has been answered is kept, and of trials that go on only what came since
 * is asked for. All of it is asked for again once a minute (of very many trials less often), since a report may be of older
 * batches than one before it.
 */
import { isTerminal } from "../../ui/state";
import { askPart, AT_ONCE, CURVES_MOST, pointsOf, type Batches, type Series, type Wanted } from "./data";

const WHOLE_MS = 60_000;
const WIDER = 2; // trials share a request where the furthest has come no further than so many times the batches of the first

type Point = Series["metrics"][number]["data"][number];
interface Kept { series: Series; /* It had ended when it was asked before, so nothing more comes. */ isWhole: boolean }

/* Where what is known of a trial ends: its group that has come least far, but for those at batch 0. 0: all is to be asked. */
export function endOf(kept: Kept | undefined, { points, metrics }: Wanted): number {
    const ends = (kept?.series.metrics ?? []).flatMap((g) => g.data.at(-1)?.batches || []);
    const isLong = kept?.series.metrics.some((g) => g.data.length > 2 * points * metrics.length); // the master has lowest and highest of longer stretches
    return ends.length && !isLong ? Math.min(...ends) : 0;
}

/* Whether a point of an answer was known already, at the same time: both are in order, and of long stretches neither has all. */
function isSame(old: Point[], since: Point[]): boolean {
    let i = 0;
    for (const p of since) {
        while (i < old.length && old[i]!.batches < p.batches) i++;
        if (old[i]?.batches === p.batches && old[i]!.time === p.time) return true;
    }
    return false;
}

/*
 * What was known before `from` with what came since; null: of what was known from there on nothing is left, since the
 * trial went back to a checkpoint, maybe to one before `from`.
 */
export function joined(old: Series, since: Series, from: number): Series | null {
    const of = new Map(since.metrics.map((g) => [g.group, g.data]));
    for (const g of old.metrics) {
        const known = g.data.filter((p) => p.batches >= from);
        if (known.length && !isSame(known, of.get(g.group) ?? [])) return null;
    }
    const before = new Map(old.metrics.map((g) => [g.group, g.data]));
    return { trial: since.trial, metrics: since.metrics.map((g) => ({ ...g, data: [...(before.get(g.group) ?? []).filter((p) => p.batches < from), ...g.data] })) };
}

/* Those that are asked for together, each list in order of where it begins. */
export function partsBy(ids: number[], from: (id: number) => number): { ids: number[]; from: number }[] {
    const parts: { ids: number[]; from: number }[] = [];
    for (const id of [...ids].sort((a, b) => from(a) - from(b))) {
        const last = parts.at(-1), at = from(id);
        if (last && last.ids.length < AT_ONCE && at <= WIDER * last.from) last.ids.push(id);
        else parts.push({ ids: [id], from: at });
    }
    return parts;
}

export class KeptSeries {
    private known = new Map<number, Kept>();
    private of = "";
    private wholeAt = 0;
    private points = 0; // the fewest that were asked for of what is known

    constructor(private readonly askOf: typeof askPart = askPart, private readonly now: () => number = Date.now) {}

    /* Finer curves than are wanted may stay, coarser ones may not. */
    private forgetOld(of: string, points: number, everyMs: number): void {
        this.points = Math.min(this.points, points);
        if (of === this.of && this.points === points && this.now() - this.wholeAt < everyMs) return;
        this.known.clear();
        [this.of, this.points, this.wholeAt] = [of, points, this.now()];
    }

    private keep(s: Series, from: number): void {
        const old = this.known.get(s.trial.id), series = old && from > 0 ? joined(old.series, s, from) : s;
        if (series) this.known.set(s.trial.id, { series, isWhole: !!old && isTerminal(old.series.trial.state) });
        else this.known.delete(s.trial.id);
    }

    /* isLast: nobody asks again soon, so all is asked for. */
    async ask(ids: number[], metrics: string[], batches: Batches, isLast: boolean, signal: AbortSignal): Promise<Series[]> {
        const what: Wanted = { metrics, batches, points: pointsOf(ids.length) };
        this.forgetOld(JSON.stringify([metrics, batches]), what.points, isLast ? 0 : WHOLE_MS * Math.max(1, ids.length / CURVES_MOST));
        const had = new Map([...this.known].map(([id, k]) => [id, k.series]));
        const parts = partsBy(ids.filter((id) => !this.known.get(id)?.isWhole), (id) => endOf(this.known.get(id), what));
        const answers = await Promise.all(parts.map(async (p) => ({ from: p.from, trials: await this.askOf(p.ids, what, p.from, signal) })));
        for (const { from, trials } of answers) for (const s of trials) this.keep(s, from);
        return ids.flatMap((id) => this.known.get(id)?.series ?? had.get(id) ?? []);
    }
}
