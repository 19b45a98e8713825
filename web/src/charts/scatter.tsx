/* Trials as dots between any two of their hyperparameters and metrics, coloured by the metric. */
import { useRef, useState } from "preact/hooks";
import { cssColour, isDark } from "../ui/dark";
import { number, value } from "../ui/format";
import { axisPixel, axisScale, type Axis } from "./axes";
import { Canvas } from "./canvas";
import { frame } from "./frame";
import { heat } from "./palette";
import type { Row } from "./parallel";
import type { Pen } from "./pen";
import type { Picture } from "./picture";
import { share, type Scale } from "./scales";

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

const HEIGHT = 360, LEFT = 64, BOTTOM = 32, EDGE = 14, NEAR = 16;

function label(a: Axis, v: number): string {
    return a.kind === "category" ? (a.categories[v] ?? "").slice(0, 12) : number(v);
}

function scalesOf(p: ScatterShape, w: number): [Scale, Scale] {
    return [axisScale(p.x, LEFT + EDGE, w - 2 * EDGE), axisScale(p.y, HEIGHT - BOTTOM - EDGE, 2 * EDGE)];
}

function place(p: ScatterShape, r: Row, [xs, ys]: [Scale, Scale]): [number, number] {
    return [axisPixel(p.x, xs, r.values[p.x.name]), axisPixel(p.y, ys, r.values[p.y.name])];
}

/* Around what is chosen. */
function ring(pen: Pen, x: number, y: number): void {
    pen.beginPath();
    pen.arc(x, y, 11, 0, 2 * Math.PI);
    pen.strokeStyle = cssColour("--accent");
    pen.lineWidth = 2.5;
    pen.stroke();
}

function drawScatter(pen: Pen, w: number, p: ScatterShape): void {
    const both = scalesOf(p, w), by = axisScale(p.by, 0, 1), dark = isDark.value;
    frame(pen, ...both, { left: LEFT, right: w - EDGE, top: EDGE, bottom: HEIGHT - BOTTOM }, (v) => label(p.x, v), (v) => label(p.y, v));
    for (const r of [...p.rows].sort((a, b) => Number(a.id === p.hover) - Number(b.id === p.hover))) {
        const [x, y] = place(p, r, both), v = r.values[p.by.name];
        if (!Number.isFinite(x) || !Number.isFinite(y)) continue;
        const s = typeof v === "number" ? share(by, v) : NaN;
        pen.beginPath();
        pen.arc(x, y, r.id === p.hover ? 8 : 5, 0, 2 * Math.PI);
        pen.fillStyle = heat(p.smallerIsBetter ? 1 - s : s, dark);
        pen.fill();
        pen.strokeStyle = cssColour(r.id === p.hover ? "--text" : "--soft");
        pen.lineWidth = r.id === p.hover ? 2 : 1;
        pen.stroke();
        if (p.chosen.includes(r.id)) ring(pen, x, y);
    }
}

export function scatterPicture(p: ScatterShape, title: string): Picture {
    return { title, height: HEIGHT, draw: (pen, w) => drawScatter(pen, w, { ...p, hover: null }) };
}

export function Scatter(p: ScatterProps) {
    const width = useRef(0);
    const [found, setFound] = useState<{ row: Row; x: number; y: number } | null>(null);
    const draw = (pen: Pen, w: number) => {
        width.current = w;
        drawScatter(pen, w, p);
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
    };
    const leave = () => { setFound(null); p.onHover(null); };
    const names = [...new Set([p.x.name, p.y.name, p.by.name])];
    return <div class="chart">
        <Canvas height={HEIGHT} label={p.summary} draw={draw} onMove={onMove} onLeave={leave} onUp={() => found && p.onPick(found.row.id)} />
        {found && <div class="chart-tip" style={{ left: `${found.x}px`, top: `${found.y}px` }}>
            trial {found.row.id}{names.map((n) => ` · ${n} ${value(found.row.values[n])}`).join("")}</div>}
    </div>;
}
