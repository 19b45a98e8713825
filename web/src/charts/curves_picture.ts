/* What curves and their file have in common: the ends of the axes and their texts; and the file itself. */
import { cssColour } from "../ui/dark";
import { number, numbers } from "../ui/words/format";
import { shown } from "../ui/words/name";
import { duration, full, precise } from "../ui/words/time";
import { drawCurves, type Curve } from "./draw";
import { frame, roomFor, upwards } from "./frame";
import type { Pen } from "./pen";
import { FONT, type Picture } from "./picture";
import { padded, scale, type Range } from "./scales";

export type XKind = "batches" | "records" | "epochs" | "time" | "clock";
export const X_WORDS: Record<XKind, string> = { batches: "batches", records: "records", epochs: "epochs", time: "time since its start", clock: "clock" };
export interface Shape { curves: Curve[]; x: XKind; logX: boolean; logY: boolean; zoom: [number, number] | null }

const EVERYWHERE: Range = [-Infinity, Infinity];
const HEIGHT = 480, RIGHT = 16, TOP = 8, BELOW = 28;
const ACROSS = 4, NAMED_MOST = 12, NAME_LINE = 18, NAME_LETTERS = 32;

const isNumber = (kind: XKind): boolean => kind === "batches" || kind === "records" || kind === "epochs";

/* Of marks of the axis; one point alone is xText(). */
export function xTexts(kind: XKind, all: readonly number[], span: number): string[] {
    return isNumber(kind) ? numbers(all) : all.map((v) => xText(kind, v, span));
}

export function xText(kind: XKind, v: number, span: number): string {
    if (isNumber(kind)) return number(v);
    if (kind === "time") return duration(v);
    if (span > 0 && span < 10e3) return precise(v).slice(11, span < 1e3 ? undefined : 21);
    const text = full(v);
    return span > 2 * 86400e3 ? text.slice(5, 16) : span > 600e3 ? text.slice(11, 16) : text.slice(11);
}

/* Ends made wider by what of `values` counts on such an axis, where its place is within x. */
function widened(ends: [number, number], values: readonly number[], at: readonly number[], [from, to]: Range, isLog: boolean): void {
    for (let i = 0; i < values.length; i++) {
        const v = values[i]!, x = at[i]!;
        if (!(x >= from && x <= to) || !Number.isFinite(v) || (isLog && v <= 0)) continue;
        if (v < ends[0]) ends[0] = v;
        if (v > ends[1]) ends[1] = v;
    }
}

/* The ends of both axes as they should be now. */
export function ranges(p: Shape): { x: [number, number]; y: [number, number] } {
    const xKind = p.logX ? "log" : "linear", yKind = p.logY ? "log" : "linear";
    const x: Range = [Infinity, -Infinity], y: Range = [Infinity, -Infinity];
    if (!p.zoom) for (const { points } of p.curves) widened(x, points.x, points.x, EVERYWHERE, p.logX);
    const seen = p.zoom ?? x;
    for (const c of p.curves) {
        // Both: a mean lags behind what was reported, so within a zoom it may lie beside all that is there.
        for (const of of c.raw ? [c.points, c.raw] : [c.points]) widened(y, of.y, of.x, seen, p.logY);
        if (c.band) for (const edge of [c.band.lo, c.band.hi]) widened(y, edge, c.band.x, seen, p.logY);
    }
    const xs = scale(xKind, ...seen, 0, 1), ys = scale(yKind, ...y, 0, 1);
    return { x: [xs.lo, xs.hi], y: padded(ys.kind, ys.lo, ys.hi) };
}

/* Names of those that are not grey, as many as have room. */
function names(pen: Pen, named: Curve[], left: number, width: number, top: number): void {
    pen.font = FONT;
    named.slice(0, NAMED_MOST).forEach((c, i) => {
        const x = left + (i % ACROSS) * ((width - left) / ACROSS), y = top + Math.floor(i / ACROSS) * NAME_LINE;
        pen.strokeStyle = c.colour;
        pen.lineWidth = 2.5;
        pen.setLineDash(c.dash);
        pen.beginPath();
        pen.moveTo(x, y - 4);
        pen.lineTo(x + 24, y - 4);
        pen.stroke();
        pen.setLineDash([]);
        pen.fillStyle = cssColour("--text");
        const text = shown(c.label), isLast = i === NAMED_MOST - 1 && named.length > NAMED_MOST;
        pen.fillText(isLast ? `and ${named.length - i} more` : text.length > NAME_LETTERS ? `${text.slice(0, NAME_LETTERS)}…` : text, x + 30, y);
    });
}

export function curvesPicture(p: Shape, title: string): Picture {
    const { x, y } = ranges(p), named = p.curves.filter((c) => c.layer !== "back");
    const lines = Math.ceil(Math.min(named.length, NAMED_MOST) / ACROSS), bottom = HEIGHT - BELOW;
    const draw = (pen: Pen, width: number) => {
        const ys = scale(p.logY ? "log" : "linear", ...y, bottom, TOP), left = roomFor(numbers(upwards(ys, bottom - TOP)));
        const xs = scale(p.logX ? "log" : p.x === "clock" ? "time" : "linear", ...x, left, width - RIGHT);
        const zone = -new Date(x[0]).getTimezoneOffset() || 0;
        frame(pen, xs, ys, { left, right: width - RIGHT, top: TOP, bottom }, (all) => xTexts(p.x, all, x[1] - x[0]), numbers, zone);
        drawCurves(pen, p.curves, xs, ys, 1, cssColour("--idle"));
        names(pen, named, left, width, HEIGHT + 8);
    };
    return { title: `${title}, by ${X_WORDS[p.x]}`, height: HEIGHT + lines * NAME_LINE + 8, draw };
}
