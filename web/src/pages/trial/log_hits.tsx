/* Lines that match, among others: where they are in what is read, and the way from one to the next. The master finds them, as it does elsewhere. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, isSignedIn } from "../../api/client";
import type { LogView } from "../../state/address";
import { pauseAfter } from "../../state/live";
import type { Line } from "../../ui/log/loglines";
import { filterOf, isBetween, read } from "./log_reader";

const MOST = 3000; // lines that are read at once
const REST_MS = 250, AGAIN_MS = 1000; // before what may be only the first of a window's moves; between readings of a log that grows

interface Found { from: number; to: number; ids: ReadonlySet<number> }
const NONE: Found = { from: 0, to: 0, ids: new Set() };

/* What is not known of a window: the part behind what was asked for; all of it where it begins before that. null: nothing. */
export function unknown(f: Pick<Found, "from" | "to">, first: number, last: number): number | null {
    if (first < f.from || first > f.to) return first - 1;
    return last > f.to ? f.to : null;
}

/* One reading at a time, which a window that moves on does not end: what came meanwhile is looked for after it. */
export class Hits {
    found = NONE;
    error = "";
    /* What failed is going to be asked for again. */
    isComing = false;
    private readonly stop = new AbortController();
    private first = 0;
    private last = 0;
    private failures = 0;
    private isBusy = false;
    private isRefused = false; // the same question would get the same answer
    private timer: ReturnType<typeof setTimeout> | undefined;
    private readonly unheard: () => void;

    constructor(readonly key: string, private readonly id: string, private readonly view: LogView, private readonly changed: () => void) {
        let wasOut = false;
        this.unheard = isSignedIn.subscribe((isIn) => {
            if (isIn && wasOut) this.again();
            wasOut = isIn === false;
        });
    }

    /* Of those lines the ones that match; what is known besides lies behind the window. */
    among(lines: readonly Line[]): number {
        return lines.reduce((n, l) => n + Number(this.found.ids.has(l.id)), 0);
    }

    /* The ids of the first and the last line of the window; 0: it has none. */
    see(first: number, last: number): void {
        [this.first, this.last] = [first, last];
        this.later(REST_MS);
    }

    end(): void {
        this.unheard();
        this.stop.abort();
        clearTimeout(this.timer);
    }

    private again(): void {
        this.isRefused = false;
        this.later(0);
    }

    private later(ms: number): void {
        if (this.isBusy || this.isRefused || this.timer !== undefined || !this.last || unknown(this.found, this.first, this.last) === null) return;
        this.timer = setTimeout(() => void this.look(), ms);
    }

    private async look(): Promise<void> {
        this.timer = undefined;
        this.isBusy = true;
        try {
            await this.read();
            this.failures = 0;
            this.error = "";
        } catch (e) {
            if (!this.stop.signal.aborted) this.failed(e);
        }
        this.isBusy = false;
        if (this.stop.signal.aborted) return;
        this.changed();
        this.later(AGAIN_MS);
    }

    private async read(): Promise<void> {
        const { found: was, first, last } = this, beyondId = last ? unknown(was, first, last) : null; // it may have become empty while this waited
        if (beyondId === null) return;
        const some = await read(this.id, { ...filterOf(this.view, true), limit: MOST, beyondId }, this.stop.signal);
        const isWhole = beyondId < first, kept = isWhole ? [] : [...was.ids].filter((line) => line >= first);
        this.found = { from: first, to: some.length < MOST ? last : some.at(-1)!.id, ids: new Set([...kept, ...some.map((l) => l.id)]) };
    }

    private failed(e: unknown): void {
        if (!(e instanceof ApiError)) throw e;
        const ms = pauseAfter(e, this.failures++);
        this.error = e.message;
        this.isComing = ms !== null;
        this.isRefused = ms === null;
        if (ms !== null) this.timer = setTimeout(() => void this.look(), ms);
    }
}

/* What is known of the lines that match within a window; null: nothing is looked for. */
export function useHits(id: string, view: LogView, lines: Line[]): Hits | null {
    const [, draw] = useState(0), hits = useRef<Hits | null>(null), key = isBetween(view) ? JSON.stringify([id, { ...view, line: 0 }]) : "";
    useEffect(() => {
        if (!key) return;
        const mine = hits.current = new Hits(key, id, view, () => draw((n) => n + 1));
        return () => mine.end();
    }, [key]);
    useEffect(() => { if (key) hits.current?.see(lines[0]?.id ?? 0, lines.at(-1)?.id ?? 0); }, [key, lines]);
    return hits.current?.key === key ? hits.current : null;
}

/* The next line that matches after one (1) or before it (-1); 0: there is none. */
export async function nextHit(id: string, view: LogView, from: number, by: 1 | -1, signal: AbortSignal): Promise<number> {
    const lines = await read(id, { ...filterOf(view, true), limit: 1, beyondId: from, ...(by < 0 ? { orderBy: "ORDER_BY_DESC" } : {}) }, signal);
    return lines[0]?.id ?? 0;
}

export function HitButtons({ go }: { go: (by: 1 | -1) => void }) {
    return <span class="row"><button type="button" onClick={() => go(-1)}>Match before</button><button type="button" onClick={() => go(1)}>Match after</button></span>;
}
