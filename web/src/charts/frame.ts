/* The lines and texts of two axes. */
import { cssColour } from "../ui/dark";
import type { Pen } from "./pen";
import { toPixel, type Scale } from "./scales";
import { ticks } from "./ticks";

/* Between the ends of both scales; `xZone` as ticks() has it. */
export function frame(pen: Pen, xs: Scale, ys: Scale, box: { left: number; right: number; top: number; bottom: number }, xText: (v: number) => string,
    yText: (v: number) => string, xZone = 0): void {
    pen.strokeStyle = cssColour("--line");
    pen.fillStyle = cssColour("--soft");
    pen.font = "12px system-ui, sans-serif";
    pen.lineWidth = 1;
    pen.textAlign = "center";
    for (const v of ticks(xs, Math.max(2, Math.floor((box.right - box.left) / 90)), xZone)) {
        const x = toPixel(xs, v);
        pen.strokeRect(x, box.top, 0, box.bottom - box.top);
        pen.fillText(xText(v), x, box.bottom + 16);
    }
    pen.textAlign = "right";
    for (const v of ticks(ys, Math.max(2, Math.floor((box.bottom - box.top) / 45)))) {
        const y = toPixel(ys, v);
        pen.strokeRect(box.left, y, box.right - box.left, 0);
        pen.fillText(yText(v), box.left - 6, y + 4);
    }
    pen.textAlign = "start";
}
