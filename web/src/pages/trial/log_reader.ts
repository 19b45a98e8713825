/*
 * The window of a trial's log that is in memory, and what moves it. A browser has six connections to a master, all its tabs
 * together: one stream at most follows the end, and none in a tab that nobody sees.
 */
import { ApiError, isSignedIn, stream, type Messages } from "../../api/client";
import type { LogView } from "../../state/address";
import { pauseAfter } from "../../state/live";
import { line, merge, trim, type Line } from "../../ui/log/loglines";

const PAGE = 500, MOST = 3000;

type Sent = Messages["TrialLogsResponse"];
type Query = { [key: string]: string | number | boolean | string[] | number[] | undefined };

/* Whether lines that do not match are shown, too. */
export const isBetween = (v: LogView): boolean => v.between && v.search !== "";

/* What the reader's filters are to the API; `matching`: of what is searched for alone. */
export function filterOf(v: LogView, matching = !isBetween(v)): Query {
    const search = matching ? v.search : "";
    return { searchText: search || undefined, enableRegex: search && v.regex ? true : undefined, levels: v.levels.map((l) => `LOG_LEVEL_${l}`), rankIds: v.ranks,
        agentIds: v.hosts, stdtypes: v.outputs, sources: v.sources };
}

export async function read(id: string, more: Query, signal: AbortSignal): Promise<Line[]> {
    const out: Line[] = [];
    for await (const s of stream<Sent>("GET /api/v1/trials/{trialId}/logs", { path: { trialId: id }, query: more, signal })) out.push(line(s));
    return out.sort((a, b) => a.id - b.id);
}

export interface Win { lines: Line[]; atStart: boolean; atEnd: boolean }
export const NOTHING: Win = { lines: [], atStart: false, atEnd: false };

/* The lines around one, or the newest. */
async function first(id: string, v: LogView, signal: AbortSignal): Promise<Win> {
    const filter = filterOf(v);
    if (!v.line) {
        const lines = await read(id, { ...filter, limit: PAGE, orderBy: "ORDER_BY_DESC" }, signal);
        return { lines, atStart: lines.length < PAGE, atEnd: true };
    }
    const [before, after] = await Promise.all([
        read(id, { ...filter, limit: PAGE, orderBy: "ORDER_BY_DESC", beyondId: v.line + 1 }, signal),
        read(id, { ...filter, limit: PAGE, beyondId: v.line }, signal)]);
    return { lines: merge(before, after), atStart: before.length < PAGE, atEnd: after.length < PAGE };
}

const isSeen = (): boolean => document.visibilityState === "visible";

/* One reading at a time; what failed is tried again after growing pauses, and once the tab is seen or its reader signed in. */
export class Reader {
    win: Win = NOTHING;
    error = "";
    /* What failed is going to be asked for again. */
    isComing = false;
    private readonly stop = new AbortController();
    private tail: AbortController | null = null;
    private busy = false;
    private failures = 0;
    private timer: ReturnType<typeof setTimeout> | undefined; // of a reading
    private back: ReturnType<typeof setTimeout> | undefined; // of what follows the end
    private unheard = (): void => undefined;

    constructor(private readonly id: string, private readonly view: LogView, private readonly changed: () => void) {}

    start(): void {
        let wasOut = false;
        const unheard = isSignedIn.subscribe((isIn) => {
            if (isIn && wasOut) this.resume();
            wasOut = isIn === false;
        });
        const onSeen = () => (isSeen() ? this.resume() : this.letGo());
        document.addEventListener("visibilitychange", onSeen);
        this.unheard = () => {
            unheard();
            document.removeEventListener("visibilitychange", onSeen);
        };
        this.begin();
    }

    end(): void {
        this.unheard();
        this.stop.abort();
        clearTimeout(this.timer);
        this.letGo();
    }

    private set(win: Partial<Win>): void {
        this.win = { ...this.win, ...win };
        this.changed();
    }

    private resume(): void {
        if (this.win === NOTHING) this.begin();
        else if (this.win.atEnd) void this.follow();
    }

    private letGo(): void {
        clearTimeout(this.back);
        this.tail?.abort();
        this.tail = null;
    }

    private succeeded(): void {
        const wasIll = this.error !== "";
        this.failures = 0;
        this.error = "";
        if (wasIll) this.changed();
    }

    private failed(e: unknown, again: () => void): ReturnType<typeof setTimeout> | undefined {
        if (!(e instanceof ApiError)) throw e;
        const ms = pauseAfter(e, this.failures++);
        this.error = e.message;
        this.isComing = ms !== null;
        this.changed();
        return ms === null ? undefined : setTimeout(again, ms);
    }

    private async guarded(work: () => Promise<void>): Promise<void> {
        if (this.busy || this.stop.signal.aborted) return;
        this.busy = true;
        clearTimeout(this.timer);
        try {
            await work();
            this.succeeded();
        } catch (e) {
            if (!this.stop.signal.aborted) this.timer = this.failed(e, () => void this.guarded(work));
        } finally {
            this.busy = false;
        }
    }

    private begin(): void {
        void this.guarded(async () => {
            this.set(await first(this.id, this.view, this.stop.signal));
            if (this.win.atEnd) void this.follow();
        });
    }

    older(): void {
        const from = this.win.lines[0]?.id;
        if (this.win.atStart || from === undefined) return;
        void this.guarded(async () => {
            const more = await read(this.id, { ...filterOf(this.view), limit: PAGE, orderBy: "ORDER_BY_DESC", beyondId: from }, this.stop.signal);
            const all = merge(more, this.win.lines), kept = trim(all, MOST, "oldest");
            this.set({ lines: kept, atStart: more.length < PAGE, atEnd: this.win.atEnd && kept.length === all.length });
            if (!this.win.atEnd) this.letGo(); // the reader has gone so far up that the end is out of the window
        });
    }

    newer(): void {
        const from = this.win.lines.at(-1)?.id ?? 0;
        if (this.win.atEnd || this.win === NOTHING) return;
        void this.guarded(async () => {
            const more = await read(this.id, { ...filterOf(this.view), limit: PAGE, beyondId: from }, this.stop.signal);
            this.grow(more);
            this.set({ atEnd: more.length < PAGE });
            if (this.win.atEnd) void this.follow();
        });
    }

    private grow(more: Line[]): void {
        const all = merge(this.win.lines, more), kept = trim(all, MOST, "newest");
        this.set({ lines: kept, atStart: this.win.atStart && kept.length === all.length });
    }

    /* New lines as they come, several to one drawing; in place of what followed before, and begun again where the stream breaks. */
    private async follow(): Promise<void> {
        this.letGo();
        if (!isSeen() || this.stop.signal.aborted) return;
        const mine = this.tail = new AbortController(), from = this.win.lines.at(-1)?.id ?? 0;
        let waiting: Line[] = [], frame = 0;
        const flush = () => {
            frame = 0;
            if (this.tail === mine) this.grow(waiting);
            waiting = [];
        };
        try {
            for await (const s of stream<Sent>("GET /api/v1/trials/{trialId}/logs", { path: { trialId: this.id },
                query: { ...filterOf(this.view), follow: true, beyondId: from }, signal: mine.signal, opened: () => this.succeeded() })) {
                waiting.push(line(s));
                frame ||= requestAnimationFrame(flush);
            }
        } catch (e) {
            if (!mine.signal.aborted) this.back = this.failed(e, () => void this.follow());
        } finally {
            if (frame) cancelAnimationFrame(frame);
            if (waiting.length) flush();
        }
    }
}
