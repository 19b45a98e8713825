/* What a page shows and keeps asking for: one question at a time, none while the tab is hidden, seldom while it fails. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, isSignedIn } from "../api/client";

const SLOWEST_MS = 30_000, TOO_LONG = 504;

export interface Live<T> {
    /* null until the first answer; what failed later leaves it as it was. */
    data: T | null;
    error: ApiError | null;
    /* Asks at once, e.g. after an action. */
    again: () => void;
}

/* What the next question waits for: `everyMs` after an answer, twice as long after each failure, at most 30 s. */
export function waitMs(everyMs: number, failures: number): number {
    return Math.min(SLOWEST_MS, everyMs * Math.pow(2, Math.min(failures, 20)));
}

/* What to wait for after one more failure; null: the same question would get the same answer. */
export function pauseAfter(e: ApiError, failures: number): number | null {
    if (e.status === TOO_LONG) return SLOWEST_MS; // it would take as long in a second, and others wait behind it
    return e.status === 0 || e.status >= 500 || e.status === 429 ? waitMs(1000, failures) : null;
}

class Asker<T> {
    private timer: ReturnType<typeof setTimeout> | undefined;
    private stop: AbortController | null = null;
    private failures = 0;
    private isDone = false;

    constructor(private readonly ask: (stop: AbortSignal, told: (part: T) => void) => Promise<T>, private readonly every: (got: T) => number | null,
        private readonly tell: (data: T | null, error: ApiError | null) => void, private readonly tellPart: (part: T) => void) {}

    private later(ms: number): void {
        clearTimeout(this.timer);
        if (!this.isDone && document.visibilityState === "visible") this.timer = setTimeout(() => void this.now(), ms);
    }

    async now(): Promise<void> {
        clearTimeout(this.timer);
        this.stop?.abort();
        const stop = this.stop = new AbortController();
        try {
            const got = await this.ask(stop.signal, (part) => { if (!stop.signal.aborted) this.tellPart(part); });
            if (stop.signal.aborted) return;
            this.failures = 0;
            this.tell(got, null);
            const ms = this.every(got);
            if (ms !== null) this.later(ms);
        } catch (e) {
            if (stop.signal.aborted) return;
            if (!(e instanceof ApiError)) throw e;
            this.tell(null, e);
            const ms = pauseAfter(e, this.failures++);
            if (ms !== null) this.later(ms);
        }
    }

    end(): void {
        this.isDone = true;
        clearTimeout(this.timer);
        this.stop?.abort();
    }
}

/*
 * Asks when `key` changes (what it knew is forgotten then), when `detail` changes (it is not), and again as long as
 * `every` says how many milliseconds to wait after an answer (null: no more). A part that `ask` tells of is shown while
 * there is nothing whole.
 */
export function useLive<T>(key: string, detail: string, ask: (stop: AbortSignal, told: (part: T) => void) => Promise<T>, every: (got: T) => number | null): Live<T> {
    const [state, setState] = useState<{ key: string; data: T | null; error: ApiError | null; isPart?: boolean }>({ key, data: null, error: null });
    const asker = useRef<Asker<T> | null>(null);
    useEffect(() => {
        const mine = new Asker(ask, every, (data, error) => setState((s) => ({ key, data: data ?? (s.key === key ? s.data : null), error, isPart: data === null && s.key === key && !!s.isPart })),
            (part) => setState((s) => (s.key === key && s.data !== null && !s.isPart ? s : { key, data: part, error: null, isPart: true })));
        asker.current = mine;
        void mine.now();
        const onShown = () => { if (document.visibilityState === "visible") void mine.now(); };
        document.addEventListener("visibilitychange", onShown);
        addEventListener("online", onShown); // it need not wait until it would ask again
        let wasOut = false; // who signs in again sees the page as it is now
        const unheard = isSignedIn.subscribe((isIn) => {
            if (isIn && wasOut) void mine.now();
            wasOut = isIn === false;
        });
        return () => {
            unheard();
            document.removeEventListener("visibilitychange", onShown);
            removeEventListener("online", onShown);
            mine.end();
        };
    }, [key, detail]);
    const isMine = state.key === key;
    return { data: isMine ? state.data : null, error: isMine ? state.error : null, again: () => void asker.current?.now() };
}
