/* Curves on a canvas, between two scales. No state: everything that is seen is in the arguments. */
import type { Pen } from "./pen";
import { downsample, type Points } from "./sample";
import { pixels, toPixel, type Scale } from "./scales";

/* From lo to hi at each x. */
export interface Band { x: number[]; lo: number[]; hi: number[] }

type Layer = "back" | "plain" | "front";
const LAYERS: readonly Layer[] = ["back", "plain", "front"];

export interface Curve {
    id: number;
    label: string;
    points: Points;
    /* Before smoothing: drawn faintly behind; null: nothing was smoothed. */
    raw: Points | null;
    colour: string;
    dash: readonly number[];
    /* "front" is bold, "back" is grey. */
    layer: Layer;
    /* Of several curves: how far they lie apart. */
    band?: Band;
    /* Where the best checkpoint was made. */
    star?: { x: number; y: number } | null;
}

const WIDTH = { front: 2.5, plain: 1.5, back: 1 };
/* Points from which on nothing is dashed, and all but the front a pixel wide: without a GPU a browser draws that ten to thirty times as fast. */
const MANY = 20_000;
const RUN = 10; // points that the front is stroked by then: of one long path each crossing costs
const ALPHA = { front: 1, plain: 0.9, back: 0.35 };
const DOTTED_MOST = 60; // points

function line(ctx: Pen, p: Points, x: Scale, y: Scale, run = Infinity): void {
    const across = pixels(x), up = pixels(y), n = p.x.length; // no object a point: there are a hundred thousand
    let isDown = false;
    ctx.beginPath();
    for (let i = 0; i < n; i++) {
        const px = across(p.x[i]!), py = up(p.y[i]!);
        if (isDown && i % run === 0) {
            ctx.lineTo(px, py);
            ctx.stroke();
            ctx.beginPath();
            isDown = false;
        }
        if (!Number.isFinite(px) || !Number.isFinite(py)) isDown = false;
        else if (isDown) ctx.lineTo(px, py);
        else {
            ctx.moveTo(px, py);
            isDown = true;
        }
    }
    ctx.stroke();
}

function dots(ctx: Pen, p: Points, x: Scale, y: Scale, radius: number): void {
    for (let i = 0; i < p.x.length; i++) {
        const [px, py] = [toPixel(x, p.x[i]!), toPixel(y, p.y[i]!)];
        if (!Number.isFinite(px) || !Number.isFinite(py)) continue;
        ctx.beginPath();
        ctx.arc(px, py, radius, 0, 2 * Math.PI);
        ctx.fill();
    }
}

function area(ctx: Pen, b: Band, x: Scale, y: Scale): void {
    const edge = [...b.x.map((v, i) => [v, b.hi[i]!] as const), ...b.x.map((v, i) => [v, b.lo[i]!] as const).reverse()];
    const seen = edge.map(([vx, vy]) => [toPixel(x, vx), toPixel(y, vy)] as const).filter(([px, py]) => Number.isFinite(px) && Number.isFinite(py));
    ctx.beginPath();
    seen.forEach(([px, py], i) => (i ? ctx.lineTo(px, py) : ctx.moveTo(px, py)));
    ctx.fill();
}

function drawOne(ctx: Pen, c: Curve, x: Scale, y: Scale, ratio: number, grey: string, areMany: boolean): void {
    const isFront = c.layer === "front";
    const columns = Math.max(1, Math.floor(Math.abs(x.to - x.from)));
    const colour = c.layer === "back" ? grey : c.colour;
    ctx.strokeStyle = ctx.fillStyle = colour;
    if (c.band && c.layer !== "back") {
        ctx.globalAlpha = 0.18;
        area(ctx, c.band, x, y);
    }
    if (c.raw) {
        ctx.globalAlpha = 0.25;
        ctx.lineWidth = ratio;
        ctx.setLineDash([]);
        line(ctx, downsample(c.raw, x.lo, x.hi, columns), x, y);
    }
    ctx.globalAlpha = ALPHA[c.layer];
    ctx.lineWidth = areMany && !isFront ? 1 : WIDTH[c.layer] * ratio;
    ctx.setLineDash(areMany ? [] : c.dash.map((d) => d * ratio));
    const shown = downsample(c.points, x.lo, x.hi, columns), n = shown.x.length;
    line(ctx, shown, x, y, areMany && isFront ? RUN : Infinity);
    ctx.setLineDash([]);
    if (n < 2 || (isFront && n <= DOTTED_MOST)) dots(ctx, shown, x, y, 3 * ratio);
}

/* A star of five points, whatever the layer of its curve. */
function star(ctx: Pen, c: Curve, x: Scale, y: Scale, ratio: number): void {
    const [px, py] = [toPixel(x, c.star!.x), toPixel(y, c.star!.y)];
    if (!Number.isFinite(px) || !Number.isFinite(py)) return;
    ctx.fillStyle = c.colour;
    ctx.globalAlpha = 1;
    ctx.beginPath();
    for (let i = 0; i < 10; i++) {
        const r = (i % 2 ? 3.4 : 8) * ratio, turn = (i * Math.PI) / 5 - Math.PI / 2;
        if (i) ctx.lineTo(px + r * Math.cos(turn), py + r * Math.sin(turn));
        else ctx.moveTo(px + r * Math.cos(turn), py + r * Math.sin(turn));
    }
    ctx.fill();
}

function isSeen(at: { x: number; y: number }, x: Scale, y: Scale): boolean {
    return at.x >= x.lo && at.x <= x.hi && at.y >= y.lo && at.y <= y.hi;
}

/* Those of `layers`, back first, so that what was chosen lies on top. `ratio`: pixels of the canvas for one of CSS. */
export function drawCurves(ctx: Pen, curves: Curve[], x: Scale, y: Scale, ratio: number, grey: string, layers = LAYERS): void {
    ctx.save();
    ctx.beginPath();
    ctx.rect(Math.min(x.from, x.to), Math.min(y.from, y.to), Math.abs(x.to - x.from), Math.abs(y.to - y.from));
    ctx.clip();
    ctx.lineJoin = "round";
    const areMany = curves.reduce((n, c) => n + c.points.x.length, 0) > MANY;
    for (const layer of layers)
        for (const c of curves) if (c.layer === layer) drawOne(ctx, c, x, y, ratio, grey, areMany);
    ctx.restore();
    ctx.save(); // one at the edge is seen whole
    for (const c of curves) if (c.star && layers.includes(c.layer) && isSeen(c.star, x, y)) star(ctx, c, x, y, ratio);
    ctx.restore();
}
