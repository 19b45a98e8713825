/* The lines and texts of two axes. */
import { cssColour } from "../ui/dark";
import type { Pen } from "./pen";
import { toPixel, type Scale } from "./scales";
import { ticks } from "./ticks";

const BESIDE = 6, LEAST = 64; // CSS pixels
const LETTER = 7, CAPITAL = 9, BROAD = 12; // of 12 px type; broad is also all that is not ASCII

export function upwards(ys: Scale, height: number): number[] {
    return ticks(ys, Math.max(2, Math.floor(height / 45)));
}

const widthOf = (text: string): number => [...text].reduce((sum, c) => sum + (/[mwMW@%]|[^\x20-\x7e]/.test(c) ? BROAD : /[A-Z]/.test(c) ? CAPITAL : LETTER), 0);

/* The room that the texts at the left of an axis take. */
export function roomFor(texts: readonly string[]): number {
    return Math.max(LEAST, 2 * BESIDE + Math.max(0, ...texts.map(widthOf)));
}

/* Between the ends of both scales; `xZone` as ticks() has it. */
export function frame(pen: Pen, xs: Scale, ys: Scale, box: { left: number; right: number; top: number; bottom: number }, xTexts: (all: number[]) => string[],
    yTexts: (all: number[]) => string[], xZone = 0): void {
    pen.strokeStyle = cssColour("--line");
    pen.fillStyle = cssColour("--soft");
    pen.font = "12px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.textAlign = "center";
    const across = ticks(xs, Math.max(2, Math.floor((box.right - box.left) / 90)), xZone), below = xTexts(across);
    across.forEach((v, i) => {
        const x = toPixel(xs, v);
        pen.strokeRect(x, box.top, 0, box.bottom - box.top);
        pen.fillText(below[i]!, x, box.bottom + 16);
    });
    pen.textAlign = "right";
    const up = upwards(ys, box.bottom - box.top), beside = yTexts(up);
    up.forEach((v, i) => {
        const y = toPixel(ys, v);
        pen.strokeRect(box.left, y, box.right - box.left, 0);
        pen.fillText(beside[i]!, box.left - BESIDE, y + 4);
    });
    pen.textAlign = "start";
}
