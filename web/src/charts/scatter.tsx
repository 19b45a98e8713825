/* Trials as dots between any two of their hyperparameters and metrics, coloured by the metric. */
import { useRef, useState } from "preact/hooks";
import { cssColour, isDark } from "../ui/dark";
import { numbers, value } from "../ui/words/format";
import { axisPixel, axisScale, type Axis } from "./axes";
import { Canvas } from "./canvas";
import { frame, roomFor, upwards } from "./frame";
import type { Layers } from "./layers";
import { heat } from "./palette";
import type { Row } from "./parallel";
import type { Pen } from "./pen";
import type { Picture } from "./picture";
import { share, type Scale } from "./scales";
import { Tip } from "./tip";

export interface ScatterShape {
    x: Axis;
    y: Axis;
    /* What colours the dots. */
    by: Axis;
    rows: Row[];
    smallerIsBetter: boolean;
    hover: number | null;
    chosen: readonly number[];
}

export interface ScatterProps extends ScatterShape {
    onHover: (id: number | null) => void;
    onPick: (id: number) => void;
    summary: string;
}

const HEIGHT = 360, BOTTOM = 32, EDGE = 14, NEAR = 16;

function labels(a: Axis, all: number[]): string[] {
    return a.kind === "category" ? all.map((v) => (a.categories[v] ?? "").slice(0, 12)) : numbers(all);
}

/* What is written at the left of the dots has the room that it needs. */
function leftOf(p: Pick<ScatterShape, "y">, ys: Scale): number {
    return roomFor(labels(p.y, upwards(ys, HEIGHT - BOTTOM - EDGE)));
}

function scalesOf(p: Pick<ScatterShape, "x" | "y">, w: number): [Scale, Scale] {
    const ys = axisScale(p.y, HEIGHT - BOTTOM - EDGE, 2 * EDGE);
    return [axisScale(p.x, leftOf(p, ys) + EDGE, w - 2 * EDGE), ys];
}

function place(p: ScatterShape, r: Row, [xs, ys]: [Scale, Scale]): [number, number] {
    return [axisPixel(p.x, xs, r.values[p.x.name]), axisPixel(p.y, ys, r.values[p.y.name])];
}

interface Dot { row: Row; x: number; y: number }

/* The dot after (1) or before (-1) one, across (0) or up and down (1); the first where there was none. null: there is no dot. */
export function nextDot(p: Pick<ScatterShape, "x" | "y" | "rows">, both: [Scale, Scale], id: number | null, along: 0 | 1, by: -1 | 1): Dot | null {
    const at = (row: Row): Dot => ({ row, x: axisPixel(p.x, both[0], row.values[p.x.name]), y: axisPixel(p.y, both[1], row.values[p.y.name]) });
    const key = (d: Dot) => (along ? [d.y, d.x] : [d.x, d.y]) as [number, number];
    const dots = p.rows.map(at).filter((d) => Number.isFinite(d.x) && Number.isFinite(d.y)).sort((a, b) => key(a)[0] - key(b)[0] || key(a)[1] - key(b)[1] || a.row.id - b.row.id);
    const now = dots.findIndex((d) => d.row.id === id);
    return dots[now < 0 ? 0 : Math.min(dots.length - 1, Math.max(0, now + by))] ?? null;
}

/* Around what is chosen. */
function ring(pen: Pen, x: number, y: number): void {
    pen.beginPath();
    pen.arc(x, y, 11, 0, 2 * Math.PI);
    pen.strokeStyle = cssColour("--accent");
    pen.lineWidth = 2.5;
    pen.stroke();
}

function drawDot(pen: Pen, p: ScatterShape, r: Row, both: [Scale, Scale], isPointedAt: boolean): void {
    const [x, y] = place(p, r, both), v = r.values[p.by.name];
    if (!Number.isFinite(x) || !Number.isFinite(y)) return;
    const s = typeof v === "number" ? share(axisScale(p.by, 0, 1), v) : NaN;
    pen.beginPath();
    pen.arc(x, y, isPointedAt ? 8 : 5, 0, 2 * Math.PI);
    pen.fillStyle = heat(p.smallerIsBetter ? 1 - s : s, isDark.value);
    pen.fill();
    pen.strokeStyle = cssColour(isPointedAt ? "--text" : "--soft");
    pen.lineWidth = isPointedAt ? 2 : 1;
    pen.stroke();
    if (p.chosen.includes(r.id)) ring(pen, x, y);
}

function drawScatter(pen: Pen, w: number, p: ScatterShape): void {
    const both = scalesOf(p, w);
    frame(pen, ...both, { left: leftOf(p, both[1]), right: w - EDGE, top: EDGE, bottom: HEIGHT - BOTTOM }, (all) => labels(p.x, all), (all) => labels(p.y, all));
    for (const r of p.rows) drawDot(pen, p, r, both, false);
}

export function scatterLayers(p: ScatterShape): Layers<Pen> {
    const row = p.hover === null ? undefined : p.rows.find((r) => r.id === p.hover);
    return { of: [p.x, p.y, p.by, p.rows, p.smallerIsBetter, ...p.chosen], behind: (pen, w) => drawScatter(pen, w, p),
        front: (pen, w) => { if (row) drawDot(pen, p, row, scalesOf(p, w), true); } };
}

export function scatterPicture(p: ScatterShape, title: string): Picture {
    return { title, height: HEIGHT, draw: (pen, w) => drawScatter(pen, w, p) };
}

export function Scatter(p: ScatterProps) {
    const width = useRef(0);
    const [found, setFound] = useState<{ row: Row; x: number; y: number } | null>(null);
    const layers = scatterLayers(p), behind = (pen: Pen, w: number) => {
        width.current = w;
        layers.behind(pen, w, HEIGHT);
    };
    const onMove = (x: number, y: number) => {
        const both = scalesOf(p, width.current);
        let best = NEAR, hit: { row: Row; x: number; y: number } | null = null;
        for (const row of p.rows) {
            const [px, py] = place(p, row, both), d = Math.hypot(px - x, py - y);
            if (d < best) [best, hit] = [d, { row, x: px, y: py }];
        }
        setFound(hit);
        p.onHover(hit?.row.id ?? null);
        return hit;
    };
    const onUp = (x: number, y: number) => { // of a tap nothing moved before
        const hit = onMove(x, y);
        if (hit) p.onPick(hit.row.id);
    };
    /* From dot to dot across, or up; those that lie beside the picture are none. */
    const onKey = (e: KeyboardEvent) => {
        const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [1, -1], ArrowDown: [1, 1] }[e.key];
        if (e.key === "Enter" && found) p.onPick(found.row.id);
        if (!by || e.ctrlKey || e.altKey || e.metaKey) return e.key === "Enter" && found !== null;
        const next = nextDot(p, scalesOf(p, width.current), found?.row.id ?? null, by[0] as 0 | 1, by[1] as -1 | 1);
        setFound(next);
        p.onHover(next?.row.id ?? null);
        return true;
    };
    const leave = () => { setFound(null); p.onHover(null); };
    const names = [...new Set([p.x.name, p.y.name, p.by.name])];
    return <div class="chart">
        <Canvas height={HEIGHT} label={p.summary} {...layers} behind={behind} scrolls onMove={onMove} onLeave={leave} onUp={onUp} onKey={onKey} name="The dots" keys="Arrow keys go from dot to dot, Enter chooses one." />
        <span class="hidden" role="status">{found && `trial ${found.row.id}`}</span>
        {found && <Tip left={found.x} top={found.y} width={width.current} lines={[`trial ${found.row.id}${names.map((n) => ` · ${n} ${value(found.row.values[n])}`).join("")}`]} />}
    </div>;
}
