/* The lines of a log that are in sight, and a few beyond; what was in sight stays there when older ones are put before it. */
import { Component, type RefObject } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { spans } from "../words/ansi";
import "./log_view.css";
import type { Line } from "./loglines";
import { precise } from "../words/time";

export interface LogLinesProps {
    box: RefObject<HTMLDivElement | null>;
    lines: Line[];
    /* The line that the address points to; 0: none. */
    marked: number;
    /* The line that reading began at; 0: the end. */
    begin: number;
    /* Ids of those that were searched for among others. */
    hits?: ReadonlySet<number>;
    onScroll: () => void;
    top: string;
    bottom: string;
}

/* Drawn once: a line never changes, and there are thousands. */
interface RowProps { l: Line; isMarked: boolean; isHit: boolean }
class Row extends Component<RowProps> {
    override shouldComponentUpdate(next: RowProps): boolean {
        return next.l.id !== this.props.l.id || next.isMarked !== this.props.isMarked || next.isHit !== this.props.isHit;
    }

    render({ l, isMarked, isHit }: RowProps) {
        return <div class={`log-line level-${l.level.toLowerCase()}${isMarked ? " marked" : ""}${isHit ? " hit" : ""}`} data-line={l.id}>
            <a class="log-time" href={`#l=${l.id}`} title={`Line ${l.id}: a link to it`}>{precise(l.time) || "no time"}</a>
            <span class="log-from">{l.rank === null ? "" : `rank ${l.rank}`}</span>
            <span class="log-level">{l.level}{isHit && <span class="hidden">matches</span>}</span>
            <span class="log-text">{spans(l.text).map((s, i) => (s.classes.length ? <span key={i} class={s.classes.map((c) => `ansi-${c}`).join(" ")}>{s.text}</span> : s.text))}</span>
        </div>;
    }
}

/* Keeps the line that was first in sight where it was, when lines are added before it or taken away there. */
function useAnchor(box: RefObject<HTMLDivElement | null>, lines: Line[]): () => void {
    const anchor = useRef<{ id: number; top: number } | null>(null);
    useLayoutEffect(() => {
        const b = box.current, a = anchor.current;
        const row = a && b?.querySelector<HTMLElement>(`[data-line="${a.id}"]`);
        if (b && a && row) b.scrollTop += row.getBoundingClientRect().top - a.top;
    }, [lines[0]?.id]);
    return () => {
        const b = box.current!, top = b.getBoundingClientRect().top;
        const rows = b.querySelectorAll<HTMLElement>(".log-line");
        let [lo, hi] = [0, rows.length];
        while (lo < hi) {
            const m = (lo + hi) >> 1;
            if (rows[m]!.getBoundingClientRect().bottom <= top) lo = m + 1;
            else hi = m;
        }
        const row = rows[lo];
        anchor.current = row ? { id: Number(row.dataset["line"]), top: row.getBoundingClientRect().top } : null;
    };
}

const HITS_MOST = 1000; // a strip has not more pixels

/* Beside the scroll bar: where in all that is read the lines are that were searched for. */
function HitStrip({ box, hits, lines }: { box: RefObject<HTMLDivElement | null>; hits: ReadonlySet<number>; lines: Line[] }) {
    const [places, setPlaces] = useState<number[]>([]);
    useLayoutEffect(() => {
        const b = box.current!, all = [...b.querySelectorAll<HTMLElement>(".log-line.hit")];
        setPlaces([...new Set(all.map((r) => Math.round(HITS_MOST * (r.offsetTop - b.offsetTop) / b.scrollHeight)))]);
    }, [hits, lines]);
    return <div class="log-hits" aria-hidden="true">{places.map((at) => <i key={at} style={{ top: `${100 * at / HITS_MOST}%` }} />)}</div>;
}

export function LogLines(p: LogLinesProps) {
    const note = useAnchor(p.box, p.lines);
    const isThere = p.begin > 0 && p.lines.some((l) => l.id === p.begin);
    useEffect(() => {
        if (isThere) p.box.current?.querySelector(`[data-line="${p.begin}"]`)?.scrollIntoView({ block: "center" });
    }, [isThere, p.begin]);
    return <div class="log-frame">
        <div ref={p.box} class="log-box" tabIndex={0} role="log" aria-live="off" aria-label="Lines of the log" onScroll={() => { note(); p.onScroll(); }}>
            <div class="soft">{p.top}</div>
            {p.lines.map((l) => <Row key={l.id} l={l} isMarked={l.id === p.marked} isHit={!!p.hits?.has(l.id)} />)}
            <div class="soft">{p.bottom}</div>
        </div>
        {p.hits && p.hits.size > 0 && <HitStrip box={p.box} hits={p.hits} lines={p.lines} />}
    </div>;
}
