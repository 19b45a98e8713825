/* A heat map: cells between two hyperparameters, each as light as the mean of a metric in it, which is written there, too. */
import { useRef, useState } from "preact/hooks";
import { cssColour, isDark } from "../ui/dark";
import { count, number } from "../ui/words/format";
import { shown } from "../ui/words/name";
import type { Axis } from "./axes";
import { binsOf, cellsOf, type Bin, type Cell } from "./cells";
import { Canvas } from "./canvas";
import type { Layers } from "./layers";
import { heat, onHeat } from "./palette";
import type { Row } from "./parallel";
import type { Pen } from "./pen";
import { FONT, type Picture } from "./picture";
import { extent } from "./scales";
import { Tip } from "./tip";

export interface HeatShape {
    x: Axis;
    y: Axis;
    /* Whose mean a cell has. */
    by: string;
    rows: Row[];
    smallerIsBetter: boolean;
    hover: number | null;
    chosen: readonly number[];
}

export interface Grid { xs: Bin[]; ys: Bin[]; cells: Cell[]; lo: number; hi: number }

export interface HeatMapProps extends HeatShape {
    grid: Grid;
    onHover: (id: number | null) => void;
    onPick: (ids: number[]) => void;
    summary: string;
}

const KEY = 56, BELOW = 40, RIGHT = 12, ROOM = 330, LOW = 26, HIGH = 56; // CSS pixels: above, below, beside, and of a cell's height
const SIDE_LEAST = 56, SIDE_MOST = 150, SIDE_PART = 0.25, TEXT_LEAST = 46, STEPS = 40, GAP = 1;
const WIDE_LEAST = 24; // CSS pixels of a cell that a finger finds; where there is no room for as many, the map is wider than its place

export function gridOf(p: Pick<HeatShape, "x" | "y" | "by" | "rows">): Grid {
    const xs = binsOf(p.x, p.rows), ys = binsOf(p.y, p.rows), cells = cellsOf(p.rows, [p.x, xs], [p.y, ys], p.by);
    const [lo, hi] = extent(cells.map((c) => c.spread.mean));
    return { xs, ys, cells, lo, hi };
}

/* 0 to 1, the good ones the light ones; of one mean alone the middle. */
export function lightness(g: Pick<Grid, "lo" | "hi">, mean: number, smallerIsBetter: boolean): number {
    const s = g.lo < g.hi ? (mean - g.lo) / (g.hi - g.lo) : mean === g.lo ? 0.5 : NaN;
    return smallerIsBetter ? 1 - s : s;
}

interface Place { left: number; top: number; wide: number; high: number }

function placeOf(g: Grid, w: number): Place {
    const longest = Math.max(0, ...g.ys.map((b) => shown(b.label).length)), most = Math.min(SIDE_MOST, SIDE_PART * w);
    const left = Math.max(SIDE_LEAST, Math.min(most, 7 * longest + 12));
    return { left, top: KEY, wide: Math.max(1, (w - left - RIGHT) / Math.max(1, g.xs.length)), high: cellHeight(g) };
}

const cellHeight = (g: Grid): number => Math.min(HIGH, Math.max(LOW, ROOM / Math.max(1, g.ys.length)));

/* As narrow as it can be. */
export function leastOf(g: Grid): number {
    const cells = WIDE_LEAST * g.xs.length + RIGHT;
    return Math.ceil(Math.max(SIDE_LEAST + cells, cells / (1 - SIDE_PART)));
}

export function heightOf(g: Grid): number {
    return KEY + cellHeight(g) * Math.max(1, g.ys.length) + BELOW;
}

/* The lowest row is that of the least value, as on any axis. */
const boxOf = (g: Grid, at: Place, x: number, y: number): [number, number] => [at.left + x * at.wide, at.top + (g.ys.length - 1 - y) * at.high];

export function cellAt(g: Grid, w: number, px: number, py: number): Cell | undefined {
    const at = placeOf(g, w), x = Math.floor((px - at.left) / at.wide), y = g.ys.length - 1 - Math.floor((py - at.top) / at.high);
    return g.cells.find((c) => c.x === x && c.y === y);
}

function cut(text: string, px: number): string {
    const clear = shown(text), most = Math.max(1, Math.floor(px / 7));
    return clear.length > most ? `${clear.slice(0, most - 1)}…` : clear;
}

/* Of a part of an axis that has no room for both its ends, the lower one. */
export function brief(label: string, px: number): string {
    const [lower, upper] = shown(label).split(" … "), text = `${lower} …`;
    return upper === undefined || 7 * shown(label).length <= px || 7 * text.length > px ? cut(label, px) : text;
}

/* What the lightness means: from the least to the greatest mean. */
function key(pen: Pen, w: number, p: HeatShape, g: Grid, left: number): void {
    const wide = Math.min(240, w - left - RIGHT) / STEPS, dark = isDark.value;
    for (let i = 0; i < STEPS; i++) {
        const s = i / (STEPS - 1);
        pen.fillStyle = heat(p.smallerIsBetter ? 1 - s : s, dark);
        pen.fillRect(left + i * wide, 4, wide + 0.5, 10);
    }
    pen.fillStyle = cssColour("--soft");
    pen.fillText(number(g.lo), left, 28);
    pen.textAlign = "end";
    pen.fillText(number(g.hi), left + STEPS * wide, 28);
    pen.textAlign = "start";
    if (w > left + STEPS * wide + 200) pen.fillText(cut(`mean of ${p.by}`, w - left - STEPS * wide - 20), left + STEPS * wide + 12, 14);
}

function names(pen: Pen, p: HeatShape, g: Grid, at: Place): void {
    const bottom = at.top + g.ys.length * at.high, every = Math.ceil(60 / at.wide);
    pen.fillStyle = cssColour("--soft");
    pen.textAlign = "end";
    g.ys.forEach((b, i) => pen.fillText(brief(b.label, at.left - 10), at.left - 6, boxOf(g, at, 0, i)[1] + at.high / 2 + 4));
    pen.textAlign = "center";
    g.xs.forEach((b, i) => { if (i % every === 0) pen.fillText(brief(b.label, at.wide * every - 6), at.left + (i + 0.5) * at.wide, bottom + 15); });
    pen.fillText(cut(`${p.x.name} →`, at.wide * g.xs.length), at.left + (at.wide * g.xs.length) / 2, bottom + 32);
    pen.textAlign = "start";
    pen.fillText(cut(`↑ ${p.y.name}`, at.left + at.wide * g.xs.length), 2, at.top - 6);
}

function border(pen: Pen, [x, y]: [number, number], at: Place, colour: string, thick: number): void {
    pen.strokeStyle = colour;
    pen.lineWidth = thick;
    pen.strokeRect(x + thick / 2 + GAP, y + thick / 2 + GAP, at.wide - thick - 2 * GAP, at.high - thick - 2 * GAP);
}

/* A chosen cell has a dot within its border: not the colour alone tells. */
function drawCell(pen: Pen, c: Cell, p: HeatShape, g: Grid, at: Place): void {
    const [x, y] = boxOf(g, at, c.x, c.y), part = lightness(g, c.spread.mean, p.smallerIsBetter), dark = isDark.value;
    const isChosen = c.ids.some((id) => p.chosen.includes(id));
    pen.fillStyle = heat(part, dark);
    pen.fillRect(x + GAP, y + GAP, at.wide - 2 * GAP, at.high - 2 * GAP);
    pen.fillStyle = onHeat(part, dark);
    pen.textAlign = "center";
    const mean = at.wide >= TEXT_LEAST ? (c.spread.n ? number(c.spread.mean, 3) : "none") : "";
    if (isChosen || mean) pen.fillText([isChosen && "●", mean].filter(Boolean).join(" "), x + at.wide / 2, y + at.high / 2 + 4);
    pen.textAlign = "start";
    if (isChosen) border(pen, [x, y], at, cssColour("--accent"), 3);
}

function drawHeat(pen: Pen, w: number, p: HeatShape, g: Grid): void {
    const at = placeOf(g, w);
    pen.font = FONT;
    key(pen, w, p, g, at.left);
    names(pen, p, g, at);
    for (const c of g.cells) drawCell(pen, c, p, g, at);
}

export function heatLayers(p: HeatShape, g: Grid): Layers<Pen> {
    const cell = p.hover === null ? undefined : g.cells.find((c) => c.ids.includes(p.hover!));
    const front = (pen: Pen, w: number) => {
        const at = placeOf(g, w);
        if (cell) border(pen, boxOf(g, at, cell.x, cell.y), at, onHeat(lightness(g, cell.spread.mean, p.smallerIsBetter), isDark.value), 2);
    };
    return { of: [g, p.x, p.y, p.by, p.smallerIsBetter, ...p.chosen], behind: (pen, w) => drawHeat(pen, w, p, g), front };
}

export function heatPicture(p: HeatShape, g: Grid, title: string): Picture {
    return { title, height: heightOf(g), draw: (pen, w) => drawHeat(pen, w, p, g) };
}

export function cellText(p: Pick<HeatShape, "x" | "y" | "by">, g: Grid, c: Cell): string {
    const { n, mean, deviation } = c.spread, apart = Number.isNaN(deviation) ? "" : ` ± ${number(deviation, 2)}`;
    const few = n < c.ids.length ? ` (${n} of them with a value)` : "";
    return shown(`${p.x.name} ${g.xs[c.x]!.label} · ${p.y.name} ${g.ys[c.y]!.label} · ${n ? `mean ${p.by} ${number(mean)}${apart}` : `no ${p.by}`} · ${count(c.ids.length, "trial")}${few}`);
}

export function HeatMap(p: HeatMapProps) {
    const width = useRef(0), box = useRef<HTMLDivElement>(null), g = p.grid;
    const [at, setAt] = useState<[number, number] | null>(null); // the cell under the pointer: what is in it may change meanwhile
    const cell = at && g.cells.find((c) => c.x === at[0] && c.y === at[1]), layers = heatLayers(p, g);
    const behind = (pen: Pen, w: number) => {
        width.current = w;
        layers.behind(pen, w, heightOf(g));
    };
    const onMove = (px: number, py: number) => {
        const found = cellAt(g, width.current, px, py);
        setAt(found ? [found.x, found.y] : null);
        p.onHover(found ? found.ids[0]! : null);
        return found;
    };
    const onUp = (px: number, py: number) => { // of a tap nothing moved before
        const found = onMove(px, py);
        if (found) p.onPick(found.ids);
    };
    const leave = () => { setAt(null); p.onHover(null); };
    const place = placeOf(g, width.current), left = cell ? boxOf(g, place, cell.x, cell.y)[0] + place.wide / 2 - (box.current?.scrollLeft ?? 0) : 0;
    return <div class="chart">
        <div ref={box} class="wide" tabIndex={0} role="region" aria-label="The map">
            <Canvas height={heightOf(g)} least={leastOf(g)} label={p.summary} {...layers} behind={behind} scrolls onMove={onMove} onLeave={leave} onUp={onUp} /></div>
        {/* Above all cells: it hides none. */}
        {cell && <Tip left={left} top={KEY} width={box.current?.clientWidth ?? 0} lines={cellText(p, g, cell).split(" · ")} />}
    </div>;
}
