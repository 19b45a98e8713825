/* Parallel coordinates: an axis for each hyperparameter and one for the metric; dragging along an axis marks a part of it. */
import { useRef, useState } from "preact/hooks";
import { cssColour, isDark } from "../ui/dark";
import { numbers } from "../ui/words/format";
import { shown } from "../ui/words/name";
import { axisPixel, axisScale, type Axis, type Value } from "./axes";
import { brushed, unbrushed, within, type Brush } from "./brush";
import { Canvas } from "./canvas";
import type { Layers } from "./layers";
import { heat } from "./palette";
import type { Pen } from "./pen";
import { FONT, type Picture } from "./picture";
import { share, toPixel, toValue, type Scale } from "./scales";
import { ticks } from "./ticks";

export interface Row {
    id: number;
    values: Record<string, Value>;
}

export interface ParallelShape {
    axes: Axis[];
    rows: Row[];
    brushes: Brush[];
    /* Whether a low value of the last axis is the good one: the good ones are the light ones. */
    smallerIsBetter: boolean;
    hover: number | null;
}

export interface ParallelProps extends ParallelShape {
    onHover: (id: number | null) => void;
    onBrush: (brushes: Brush[]) => void;
    /* Its name was pressed. */
    onAxis: (a: Axis) => void;
    summary: string;
}

const NAMES = 28; // pixels above the axes of a file
const HEIGHT = 300, TOP = 12, BOTTOM = 12, SIDE = 40;
const GRAB = 28; // CSS pixels beside an axis in which a drag is its own
const NEAR = 8;
const LEAST = 4; // a shorter drag is a click: it takes the mark away

export function axisX(i: number, n: number, width: number): number {
    return n < 2 ? width / 2 : SIDE + (i * (width - 2 * SIDE)) / (n - 1);
}

function scales(axes: Axis[]): Scale[] {
    return axes.map((a) => axisScale(a, HEIGHT - BOTTOM, TOP));
}

function tickTexts(a: Axis, all: number[]): string[] {
    return a.kind === "category" ? all.map((v) => (a.categories[v] ?? "").slice(0, 14)) : numbers(all);
}

function drawAxis(ctx: Pen, a: Axis, s: Scale, x: number, b: Brush | undefined): void {
    ctx.strokeStyle = cssColour("--soft");
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(x, TOP);
    ctx.lineTo(x, HEIGHT - BOTTOM);
    ctx.stroke();
    ctx.font = "11px system-ui, sans-serif";
    ctx.textBaseline = "middle";
    const all = ticks(s, 6), texts = tickTexts(a, all);
    all.forEach((v, i) => {
        const y = toPixel(s, v), text = texts[i]!, width = ctx.measureText(text).width;
        ctx.fillStyle = cssColour("--raised");
        ctx.globalAlpha = 0.8;
        ctx.fillRect(x + 4, y - 7, width + 4, 14);
        ctx.globalAlpha = 1;
        ctx.fillStyle = cssColour("--soft");
        ctx.fillText(text, x + 6, y);
    });
    if (!b) return;
    const [y0, y1] = [Math.max(TOP, toPixel(s, b.hi)), Math.min(HEIGHT - BOTTOM, toPixel(s, b.lo))];
    ctx.fillStyle = cssColour("--accent");
    ctx.globalAlpha = 0.3;
    ctx.fillRect(x - 7, y0, 14, Math.max(2, y1 - y0));
    ctx.globalAlpha = 1;
    ctx.strokeStyle = cssColour("--accent");
    ctx.strokeRect(x - 7, y0, 14, Math.max(2, y1 - y0));
}

function drawRow(ctx: Pen, ys: number[], xs: number[]): void {
    let isDown = false;
    ctx.beginPath();
    ys.forEach((y, i) => {
        if (!Number.isFinite(y)) isDown = false;
        else if (isDown) ctx.lineTo(xs[i]!, y);
        else {
            ctx.moveTo(xs[i]!, y);
            isDown = true;
        }
    });
    ctx.stroke();
}

/* How far a point is from a row's line; between two axes it is straight. */
export function distance(xs: number[], ys: number[], x: number, y: number): number {
    for (let i = 1; i < xs.length; i++) {
        if (x < xs[i - 1]! || x > xs[i]!) continue;
        const part = (x - xs[i - 1]!) / (xs[i]! - xs[i - 1]!);
        const d = Math.abs(ys[i - 1]! + part * (ys[i]! - ys[i - 1]!) - y);
        return Number.isFinite(d) ? d : Infinity;
    }
    return Infinity;
}

function pixelsOf(axes: Axis[], ss: Scale[], r: Row): number[] {
    return axes.map((a, i) => axisPixel(a, ss[i]!, r.values[a.name]));
}

/* 1 is the best on the last axis, 0 the worst. */
function goodness(p: ParallelShape, last: Scale | undefined, r: Row): number {
    const v = r.values[p.axes.at(-1)?.name ?? ""], s = typeof v === "number" && last ? share(last, v) : NaN;
    return p.smallerIsBetter ? 1 - s : s;
}

const placesOf = (axes: Axis[], w: number): number[] => axes.map((_, i) => axisX(i, axes.length, w));

function drawParallel(pen: Pen, w: number, p: ParallelShape): void {
    const { axes, rows, brushes } = p, ss = scales(axes), at = placesOf(axes, w), dark = isDark.value;
    const sorted = rows.map((r) => ({ r, isIn: within(r.values, axes, brushes) })).sort((a, b) => Number(a.isIn) - Number(b.isIn));
    for (const { r, isIn } of sorted) {
        pen.globalAlpha = isIn ? 0.9 : 0.15;
        pen.strokeStyle = isIn ? heat(goodness(p, ss.at(-1), r), dark) : cssColour("--idle");
        pen.lineWidth = 1.5;
        drawRow(pen, pixelsOf(axes, ss, r), at);
    }
    pen.globalAlpha = 1;
    axes.forEach((a, i) => drawAxis(pen, a, ss[i]!, at[i]!, brushes.find((b) => b.name === a.name)));
}

function drawPointedAt(pen: Pen, w: number, { axes, rows, hover }: ParallelShape): void {
    const row = hover === null ? undefined : rows.find((r) => r.id === hover);
    if (!row) return;
    pen.strokeStyle = cssColour("--text");
    pen.lineWidth = 3;
    drawRow(pen, pixelsOf(axes, scales(axes), row), placesOf(axes, w));
}

export function parallelLayers(p: ParallelShape): Layers<Pen> {
    return { of: [p.rows, p.smallerIsBetter, ...p.axes, ...p.brushes.flatMap((b) => [b.name, b.lo, b.hi])],
        behind: (pen, w) => drawParallel(pen, w, p), front: (pen, w) => drawPointedAt(pen, w, p) };
}

/* With the names of the axes, which on the page are no part of the canvas. */
export function parallelPicture(p: ParallelShape, title: string): Picture {
    const draw = (pen: Pen, w: number) => {
        pen.font = FONT;
        pen.fillStyle = cssColour("--text");
        p.axes.forEach((a, i) => {
            pen.textAlign = i === 0 ? "start" : i === p.axes.length - 1 ? "end" : "center";
            pen.fillText(shown(a.name).slice(0, 24), axisX(i, p.axes.length, w), NAMES - 8);
        });
        pen.textAlign = "start";
        pen.translate(0, NAMES);
        drawParallel(pen, w, p);
    };
    return { title, height: HEIGHT + NAMES, draw };
}

const DIGITS = 4; // of an end between those of its axis

/* To few digits, and never towards what was marked. */
function outwards(v: number, isUp: boolean): number {
    const r = Number(v.toPrecision(DIGITS));
    if (r === v || r > v === isUp) return r;
    const step = Math.pow(10, Math.floor(Math.log10(Math.abs(v))) + 1 - DIGITS);
    return Number((r + (isUp ? step : -step)).toPrecision(DIGITS));
}

/* What a drag from one height to another marks; to an end of the axis or beyond it, exactly that end: the best trial lies there. */
export function markOf(a: Axis, from: number, to: number): Brush {
    const s = axisScale(a, HEIGHT - BOTTOM, TOP), low = Math.max(from, to), high = Math.min(from, to);
    return { name: a.name, lo: low >= HEIGHT - BOTTOM ? s.lo : outwards(toValue(s, Math.max(TOP, low)), false),
        hi: high <= TOP ? s.hi : outwards(toValue(s, Math.min(HEIGHT - BOTTOM, high)), true) };
}

export function Parallel(props: ParallelProps) {
    const { axes, rows, brushes } = props;
    const drag = useRef<{ axis: number; from: number } | null>(null);
    const width = useRef(0);
    const [mark, setMark] = useState<Brush | null>(null);
    const marks = mark ? brushed(brushes, mark) : brushes, ss = scales(axes);
    const xs = () => axes.map((_, i) => axisX(i, axes.length, width.current));
    const layers = parallelLayers({ ...props, brushes: marks });
    const behind = (pen: Pen, w: number) => {
        width.current = w;
        layers.behind(pen, w, HEIGHT);
    };
    const brushTo = (y: number): Brush | null => {
        const d = drag.current;
        if (!d || Math.abs(y - d.from) < LEAST) return null;
        return markOf(axes[d.axis]!, d.from, y);
    };
    const onDown = (x: number, y: number) => {
        const i = xs().findIndex((ax) => Math.abs(ax - x) <= GRAB);
        drag.current = i < 0 ? null : { axis: i, from: y };
    };
    const onMove = (x: number, y: number) => {
        if (drag.current) return setMark(brushTo(y));
        const at = xs();
        let best = NEAR, found: number | null = null;
        for (const r of rows) {
            const d = distance(at, pixelsOf(axes, ss, r), x, y);
            if (d < best) [best, found] = [d, r.id];
        }
        if (found !== props.hover) props.onHover(found);
    };
    const onUp = (_: number, y: number) => {
        const d = drag.current, b = brushTo(y);
        drag.current = null;
        setMark(null);
        if (d) props.onBrush(b ? brushed(brushes, b) : unbrushed(brushes, axes[d.axis]!.name));
    };
    return <div>
        <div class="axis-names">{axes.map((a, i) => <button key={a.name} type="button" class="plain" title={`Mark a part of ${a.name}`} onClick={() => props.onAxis(a)}
            style={{ left: `calc(${SIDE}px + ${axes.length < 2 ? 0.5 : i / (axes.length - 1)} * (100% - ${2 * SIDE}px))` }}>{shown(a.name)}</button>)}</div>
        <Canvas height={HEIGHT} label={props.summary} {...layers} behind={behind} onDown={onDown} onMove={onMove} onUp={onUp} onLeave={() => props.onHover(null)} />
    </div>;
}
