/* Lines that match, among others: where they are in what is read, and the way from one to the next. The master finds them, as it does elsewhere. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { LogView } from "../../state/address";
import type { Line } from "../../ui/log/loglines";
import { toast } from "../../ui/talk/toasts";
import { filterOf, isBetween, read } from "./log_reader";

const MOST = 3000, REST_MS = 250; // as many lines as are read at once; after what the window rests

interface Found { key: string; from: number; to: number; ids: ReadonlySet<number> }
const NONE: Found = { key: "", from: 0, to: 0, ids: new Set() };

/* What is not known of a window: the part behind what was asked for; all of it where it begins before that. null: nothing. */
export function unknown(f: Pick<Found, "from" | "to">, first: number, last: number): number | null {
    if (first < f.from || first > f.to) return first - 1;
    return last > f.to ? f.to : null;
}

/* The ids of the lines that match within a window. */
export function useHits(id: string, view: LogView, lines: Line[]): ReadonlySet<number> {
    const [found, setFound] = useState(NONE), known = useRef(NONE), key = isBetween(view) ? JSON.stringify([id, { ...view, line: 0 }]) : "";
    const first = lines[0]?.id ?? 0, last = lines.at(-1)?.id ?? 0;
    useEffect(() => {
        if (known.current.key !== key) known.current = { ...NONE, key };
        const was = known.current, beyondId = key && last ? unknown(was, first, last) : null;
        if (beyondId === null) return;
        const stop = new AbortController();
        const ask = async () => {
            const some = await read(id, { ...filterOf(view, true), limit: MOST, beyondId }, stop.signal);
            const isWhole = beyondId < was.from || !was.to, ids = new Set([...(isWhole ? [] : was.ids), ...some.map((l) => l.id)]);
            setFound(known.current = { key, from: isWhole ? first : was.from, to: some.length < MOST ? last : some.at(-1)!.id, ids });
        };
        const timer = setTimeout(() => void ask().catch((e: Error) => { if (!stop.signal.aborted) toast(`Not searched: ${e.message}`, true); }), REST_MS);
        return () => {
            clearTimeout(timer);
            stop.abort();
        };
    }, [key, first, last]);
    return found.key === key ? found.ids : NONE.ids;
}

/* The next line that matches after one (1) or before it (-1); 0: there is none. */
export async function nextHit(id: string, view: LogView, from: number, by: 1 | -1): Promise<number> {
    const lines = await read(id, { ...filterOf(view, true), limit: 1, beyondId: from, ...(by < 0 ? { orderBy: "ORDER_BY_DESC" } : {}) }, new AbortController().signal);
    return lines[0]?.id ?? 0;
}

export function HitButtons({ go }: { go: (by: 1 | -1) => void }) {
    return <span class="row"><button type="button" onClick={() => go(-1)}>Match before</button><button type="button" onClick={() => go(1)}>Match after</button></span>;
}
