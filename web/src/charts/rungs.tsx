/* A bracket of a halving search: a column for each rung, a dot for each trial that has come there, as high as its metric; lines show who went on. */
import { useRef, useState } from "preact/hooks";
import type { ReadonlySignal } from "@preact/signals";
import { cssColour, isDark } from "../ui/dark";
import { number, numbers } from "../ui/words/format";
import { shown } from "../ui/words/name";
import { Canvas } from "./canvas";
import { roomFor, upwards } from "./frame";
import type { Layers } from "./layers";
import { colourOf } from "./palette";
import type { Pen } from "./pen";
import { FONT, type Picture } from "./picture";
import { extent, padded, scale, toPixel, type Scale } from "./scales";
import { Tip } from "./tip";

export interface RungDot { id: number; metric: number; state: string }
export interface RungColumn { rung: number; length: number; dots: RungDot[] }

export interface RungsShape {
    columns: readonly RungColumn[];
    unit: string;
    logY: boolean;
    /* Those that lie outside all marks are faint. */
    inside: ReadonlySet<number>;
    chosen: readonly number[];
}

export interface RungsProps extends RungsShape {
    hover: ReadonlySignal<number | null>;
    onHover: (id: number | null) => void;
    onPick: (id: number) => void;
    /* What became of one, in words. */
    standing: (state: string) => string;
    metric: string;
    summary: string;
}

const HEIGHT = 280, TOP = 14, BOTTOM = 30, RIGHT = 12, KEYS = 24, NEAR = 16, SIZE = 5;
/* The shape tells what became of it: the colour is the trial's own, as in its curve. */
const SHAPES: Record<string, "dot" | "square" | "triangle" | "ring" | "cross"> = { WENT_ON: "dot", STOPPED: "square", TOP: "triangle", WAITS: "ring", FAILED: "cross" };
const WORDS = [["WENT_ON", "went on"], ["STOPPED", "stopped"], ["TOP", "at the top"], ["WAITS", "waits"], ["FAILED", "failed"]] as const;

export interface Spot extends RungDot { column: number; x: number; y: number }

function scaleOf(p: RungsShape): Scale {
    const [lo, hi] = extent(p.columns.flatMap((c) => c.dots.map((d) => d.metric)), p.logY ? "log" : "linear"), kind = p.logY ? "log" : "linear";
    const plain = scale(kind, lo, hi, HEIGHT - BOTTOM, TOP);
    return scale(plain.kind, ...padded(plain.kind, plain.lo, plain.hi), HEIGHT - BOTTOM, TOP);
}

const leftOf = (ys: Scale): number => roomFor(numbers(upwards(ys, HEIGHT - BOTTOM - TOP)));

function columnX(p: RungsShape, left: number, w: number, i: number): number {
    return left + ((i + 0.5) * (w - left - RIGHT)) / p.columns.length;
}

/* All that have a place, column by column. */
export function spotsOf(p: RungsShape, w: number): Spot[] {
    const ys = scaleOf(p), left = leftOf(ys);
    return p.columns.flatMap((c, column) => c.dots.map((d) => ({ ...d, column, x: columnX(p, left, w, column), y: toPixel(ys, d.metric) }))).filter((s) => Number.isFinite(s.y));
}

/* The next one up or down in its rung; aside to the same trial in the rung beside, else to the one that is nearest in height there. */
export function stepFrom(spots: readonly Spot[], now: Spot | null, key: string): Spot | null {
    if (!now) return spots[0] ?? null;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[key] ?? 0;
    if (key === "ArrowUp" || key === "ArrowDown") {
        const own = spots.filter((s) => s.column === now.column).sort((a, b) => a.y - b.y || a.id - b.id), i = own.findIndex((s) => s.id === now.id);
        return own[Math.min(own.length - 1, Math.max(0, i + by))] ?? now;
    }
    const beside = spots.filter((s) => s.column === now.column + by), far = (s: Spot) => Math.abs(s.y - now.y);
    return beside.find((s) => s.id === now.id) ?? beside.reduce<Spot | null>((a, s) => (a && far(a) <= far(s) ? a : s), null) ?? now;
}

function mark(pen: Pen, state: string, x: number, y: number, r: number): void {
    const shape = SHAPES[state] ?? "ring";
    pen.beginPath();
    if (shape === "dot" || shape === "ring") pen.arc(x, y, r, 0, 2 * Math.PI);
    if (shape === "square") pen.rect(x - r, y - r, 2 * r, 2 * r);
    const corners = shape === "triangle" ? [[0, -1.4], [1.3, 1], [-1.3, 1], [0, -1.4]] : shape === "cross" ? [[-1, -1], [1, 1], [1, -1], [-1, 1]] : [];
    corners.forEach(([dx, dy], i) => (i === 0 || (shape === "cross" && i === 2) ? pen.moveTo(x + dx! * r, y + dy! * r) : pen.lineTo(x + dx! * r, y + dy! * r)));
    pen.lineWidth = 2;
    if (shape === "ring" || shape === "cross") pen.stroke();
    else pen.fill();
}

function drawFrame(pen: Pen, w: number, p: RungsShape): void {
    const ys = scaleOf(p), left = leftOf(ys), up = upwards(ys, HEIGHT - BOTTOM - TOP), texts = numbers(up);
    pen.font = FONT;
    pen.lineWidth = 1;
    pen.strokeStyle = cssColour("--line");
    pen.fillStyle = cssColour("--soft");
    pen.textAlign = "right";
    up.forEach((v, i) => {
        pen.strokeRect(left, toPixel(ys, v), w - left - RIGHT, 0);
        pen.fillText(texts[i]!, left - 6, toPixel(ys, v) + 4);
    });
    pen.textAlign = "center";
    const isWide = (w - left - RIGHT) / p.columns.length > 90;
    p.columns.forEach((c, i) => {
        pen.strokeRect(columnX(p, left, w, i), TOP, 0, HEIGHT - BOTTOM - TOP);
        pen.fillText(isWide ? `rung ${c.rung}: ${number(c.length)}` : String(c.rung), columnX(p, left, w, i), HEIGHT - BOTTOM + 18);
    });
    pen.textAlign = "start";
}

/* From each place of a trial to its next one. */
function lines(pen: Pen, spots: readonly Spot[]): void {
    const last = new Map<number, Spot>();
    for (const s of spots) {
        const before = last.get(s.id);
        last.set(s.id, s);
        if (!before) continue;
        pen.beginPath();
        pen.moveTo(before.x, before.y);
        pen.lineTo(s.x, s.y);
        pen.stroke();
    }
}

function drawMarks(pen: Pen, spots: readonly Spot[], size: number): void {
    for (const s of spots) {
        pen.strokeStyle = pen.fillStyle = colourOf(s.id, isDark.value);
        mark(pen, s.state, s.x, s.y, size);
    }
}

function drawRungs(pen: Pen, w: number, p: RungsShape): void {
    const spots = spotsOf(p, w);
    drawFrame(pen, w, p);
    for (const isIn of [false, true]) {
        const some = spots.filter((s) => p.inside.has(s.id) === isIn);
        pen.globalAlpha = isIn ? 1 : 0.2;
        pen.strokeStyle = cssColour("--idle");
        pen.lineWidth = 1;
        lines(pen, some);
        drawMarks(pen, some, SIZE);
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = cssColour("--accent");
    pen.lineWidth = 2.5;
    for (const s of spots.filter((s) => p.chosen.includes(s.id))) {
        pen.beginPath();
        pen.arc(s.x, s.y, 2 * SIZE, 0, 2 * Math.PI);
        pen.stroke();
    }
}

function drawPointedAt(pen: Pen, w: number, p: RungsShape, id: number | null): void {
    const own = id === null ? [] : spotsOf(p, w).filter((s) => s.id === id);
    pen.strokeStyle = cssColour("--text");
    pen.lineWidth = 3;
    lines(pen, own);
    drawMarks(pen, own, 1.6 * SIZE);
}

export function rungsLayers(p: RungsShape, hover: number | null): Layers<Pen> {
    return { of: [p.columns, p.logY, p.inside, ...p.chosen], behind: (pen, w) => drawRungs(pen, w, p), front: (pen, w) => drawPointedAt(pen, w, p, hover) };
}

/* With what the shapes mean, which on the page is beside the canvas. */
export function rungsPicture(p: RungsShape, title: string): Picture {
    const draw = (pen: Pen, w: number) => {
        drawRungs(pen, w, p);
        pen.font = FONT;
        pen.fillStyle = pen.strokeStyle = cssColour("--soft");
        WORDS.forEach(([state, words], i) => {
            mark(pen, state, 70 + i * 110, HEIGHT + 8, SIZE);
            pen.fillText(words, 82 + i * 110, HEIGHT + 12);
        });
    };
    return { title: `${title}, by ${p.unit}`, height: HEIGHT + KEYS, draw };
}

export function RungsChart(p: RungsProps) {
    const width = useRef(0), [found, setFound] = useState<Spot | null>(null), hover = p.hover.value, layers = rungsLayers(p, hover);
    const behind = (pen: Pen, w: number) => {
        width.current = w;
        layers.behind(pen, w, HEIGHT);
    };
    const point = (s: Spot | null) => { setFound(s); p.onHover(s?.id ?? null); };
    const onMove = (x: number, y: number): Spot | null => {
        const far = (s: Spot) => Math.hypot(s.x - x, s.y - y), near = spotsOf(p, width.current).filter((s) => far(s) < NEAR);
        const hit: Spot | null = near.sort((a, b) => far(a) - far(b))[0] ?? null;
        if (hit?.id !== found?.id || hit?.column !== found?.column) point(hit);
        return hit;
    };
    const onUp = (x: number, y: number) => { // of a tap nothing moved before
        const hit = onMove(x, y);
        if (hit) p.onPick(hit.id);
    };
    const onKey = (e: KeyboardEvent) => {
        if (e.key === "Enter" && found) p.onPick(found.id);
        if (!/^Arrow/.test(e.key) || e.ctrlKey || e.altKey || e.metaKey) return e.key === "Enter" && found !== null;
        point(stepFrom(spotsOf(p, width.current), found, e.key));
        return true;
    };
    const words = found && `trial ${found.id} · ${shown(p.metric)} ${number(found.metric)} · rung ${p.columns[found.column]?.rung} ${p.standing(found.state)}`;
    return <div class="chart">
        <Canvas height={HEIGHT} label={p.summary} {...layers} behind={behind} scrolls onMove={onMove} onLeave={() => point(null)} onUp={onUp} onKey={onKey}
            name="The rungs" keys="Up and down go from trial to trial of a rung, left and right from rung to rung, Enter chooses one." />
        <span class="hidden" role="status">{words}</span>
        {found && words && <Tip left={found.x} top={found.y} width={width.current} lines={[words]} />}
    </div>;
}
