/*
 * A trial's log: a window of lines that is read by id in both directions, 500 at a time, and follows the end while the
 * reader is there. Lines are text: colours become classes, and no other escape does anything.
 */
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { logQuery, logView, type LogView } from "../../state/address";
import { navigate, path, query } from "../../state/router";
import { plain } from "../../ui/words/ansi";
import { count } from "../../ui/words/format";
import { LogLines } from "../../ui/log/log_view";
import { asText, justBefore, type Line } from "../../ui/log/loglines";
import "../../ui/parts.css";
import { saveAs } from "../../ui/words/save";
import { toast } from "../../ui/talk/toasts";
import { LogFilters } from "./log_filters";
import { nextHit, useHits } from "./log_hits";
import { filterOf, isBetween, NOTHING, read, Reader } from "./log_reader";

const NO_HITS: ReadonlySet<number> = new Set();
const EDGE = 300; // CSS pixels from an end at which more is read
const SAVE_PAGE = 50_000; // lines of a download that are in memory at once; what is behind them is a file of the browser's

function useReader(id: string, view: LogView): Reader | null {
    const [, draw] = useState(0);
    const reader = useRef<Reader | null>(null);
    useEffect(() => {
        const mine = reader.current = new Reader(id, view, () => draw((n) => n + 1));
        draw((n) => n + 1);
        mine.start();
        return () => mine.end();
    }, [id, JSON.stringify(view)]);
    return reader.current;
}

/* All lines that fit, a part after the other: each is handed to the browser, which keeps what is large on its disk. */
export async function wholeLog(page: (beyondId: number) => Promise<Line[]>, most: number, told: (lines: number) => void): Promise<Blob> {
    const parts: Blob[] = [];
    for (let lines = 0, beyond = 0;;) {
        const some = await page(beyond);
        parts.push(new Blob([some.map((l) => asText(l, plain)).join("")]));
        told(lines += some.length);
        if (some.length < most) return new Blob(parts, { type: "text/plain;charset=utf-8" });
        beyond = some.at(-1)!.id;
    }
}

function Download({ id, view }: { id: string; view: LogView }) {
    const [done, setDone] = useState<number | null>(null), stop = useRef<AbortController | null>(null);
    useEffect(() => () => stop.current?.abort(), [id]);
    const save = async () => {
        const mine = stop.current = new AbortController(), filter = filterOf(view);
        setDone(0);
        try {
            saveAs(`trial_${id}.log`, await wholeLog((beyondId) => read(id, { ...filter, limit: SAVE_PAGE, beyondId }, mine.signal), SAVE_PAGE, setDone));
        } catch (e) {
            if (!mine.signal.aborted) toast(`Not downloaded: ${(e as Error).message}`, true);
        }
        setDone(null);
    };
    if (done !== null) return <button type="button" onClick={() => stop.current?.abort()}>Stop: {done.toLocaleString("en")} lines…</button>;
    return <button type="button" title={`All lines that fit; det trial logs ${id}`} onClick={() => void save()}>Download</button>;
}

/* The first line at that time or after it; 0: there is none. Lines are asked for by the time that they are after. */
async function lineAt(id: string, view: LogView, time: Date, signal: AbortSignal): Promise<number> {
    const lines = await read(id, { ...filterOf(view), limit: 1, timestampAfter: justBefore(time) }, signal);
    return lines[0]?.id ?? 0;
}

function useHash(): string {
    const [hash, setHash] = useState(location.hash);
    useEffect(() => {
        const changed = () => setHash(location.hash);
        addEventListener("hashchange", changed);
        return () => removeEventListener("hashchange", changed);
    }, []);
    return hash;
}

interface TrialLogProps {
    id: string;
    /* What stands above the lines, at the left. */
    head: ComponentChildren;
    /* The page has other things, too: their keys of the address stay. */
    isBeside?: boolean;
}

export function TrialLog({ id, head, isBeside = false }: TrialLogProps) {
    const hash = useHash(), marked = logView("", hash).line;
    // A link to a line decides where reading begins; pointing at another line later moves nothing.
    const [begin, setBegin] = useState(marked);
    const view: LogView = { ...logView(query.value.toString(), ""), line: begin };
    const reader = useReader(id, view), win = reader?.win ?? NOTHING, search = useHits(id, view, win.lines), hits = search?.found.ids ?? NO_HITS, matches = search?.among(win.lines) ?? 0;
    const box = useRef<HTMLDivElement>(null);
    const [follow, setFollow] = useState(!begin);
    useLayoutEffect(() => { if (follow && box.current) box.current.scrollTop = box.current.scrollHeight; }, [follow, win.lines]);
    const set = (change: Partial<LogView>) => { setBegin(0); setFollow(true); navigate(path.value + logQuery({ ...view, line: 0, ...change }, isBeside ? query.value.toString() : ""), true); };
    const toEnd = () => { setBegin(0); setFollow(true); };
    const go = (line: number, none: string) => {
        if (!line) return toast(none);
        location.hash = `l=${line}`;
        setBegin(line);
        setFollow(false);
    };
    const way = useRef<AbortController | null>(null);
    useEffect(() => () => way.current?.abort(), [id, JSON.stringify(view)]); // who has gone elsewhere meanwhile is not fetched back
    const find = async (line: (signal: AbortSignal) => Promise<number>, none: string) => {
        way.current?.abort();
        const mine = way.current = new AbortController();
        try {
            const found = await line(mine.signal);
            if (!mine.signal.aborted) go(found, none);
        } catch (e) {
            if (!mine.signal.aborted) toast((e as Error).message, true);
        }
    };
    const jump = (time: Date) => find((signal) => lineAt(id, view, time, signal), "Nothing that late: the newest line is the last one.");
    const step = (by: 1 | -1) => find((signal) => nextHit(id, view, marked || (by < 0 ? Number.MAX_SAFE_INTEGER : 0), by, signal), by < 0 ? "No line before it matches." : "No line after it matches.");
    const onScroll = () => {
        const b = box.current!, below = b.scrollHeight - b.scrollTop - b.clientHeight;
        if (b.scrollTop < EDGE) reader?.older();
        if (below < EDGE) reader?.newer();
        setFollow(win.atEnd && below < 4);
    };
    return <div class={isBeside ? "logs below-tabs" : "logs"}>
        <div class="head">{head}
            <span class="row push">
                <button type="button" aria-pressed={follow} onClick={() => (follow ? setFollow(false) : toEnd())}>{follow ? "Following" : "Follow"}</button>
                <Download id={id} view={view} /></span></div>
        <LogFilters id={id} view={view} set={set} jump={(time) => void jump(time)} step={(by) => void step(by)} />
        {reader?.error && <p class="error" role="alert">The log could not be read: {reader.error}.{reader.isComing && " It is asked for again by itself."}</p>}
        {search?.error && <p class="error" role="alert">Not searched: {search.error}.{search.isComing && " It is tried again by itself."}</p>}
        <LogLines box={box} lines={win.lines} marked={marked} begin={begin} hits={hits} onScroll={onScroll}
            top={win.atStart ? "The log begins here." : reader?.error ? "" : "Reading older lines…"} bottom={win.atEnd || reader?.error ? "" : "Reading newer lines…"} />
        <p class="soft" role="status">{count(win.lines.length, "line")} here{win.lines.length === 0 && win.atEnd ? ": nothing fits" : ""}{isBetween(view) && `, ${matches.toLocaleString("en")} of them ${matches === 1 ? "matches" : "match"}`}</p>
    </div>;
}

export function LogsPage({ id = "" }: Record<string, string>) {
    return <TrialLog id={id} head={<h1>Log of <a href={`/det/trials/${id}`}>trial {id}</a></h1>} />;
}
