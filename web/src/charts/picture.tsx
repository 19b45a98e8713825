/* A chart as a file, PNG or SVG: the same drawing as on the page, under a line that says what it is. */
import { cssColour } from "../ui/dark";
import { shown } from "../ui/words/name";
import { saveAs } from "../ui/words/save";
import { toast } from "../ui/talk/toasts";
import type { Pen } from "./pen";
import { SvgPen } from "./svg";

export const PICTURE_WIDTH = 1000;
const HEAD = 36, SHARP = 2; // pixels of a PNG for one of CSS
export const FONT = "12px system-ui, sans-serif";

export interface Picture {
    title: string;
    /* CSS pixels, without the title. */
    height: number;
    draw: (pen: Pen, width: number) => void;
}

export function paint(p: Picture, pen: Pen): void {
    pen.fillStyle = cssColour("--raised");
    pen.fillRect(0, 0, PICTURE_WIDTH, p.height + HEAD);
    pen.fillStyle = cssColour("--text");
    pen.font = "600 14px system-ui, sans-serif";
    pen.fillText(shown(p.title).slice(0, 120), 12, 22);
    pen.save();
    pen.translate(0, HEAD);
    p.draw(pen, PICTURE_WIDTH);
    pen.restore();
}

export function svgOf(p: Picture): string {
    const pen = new SvgPen();
    paint(p, pen);
    return pen.text(PICTURE_WIDTH, p.height + HEAD, shown(p.title));
}

function pngOf(p: Picture): Promise<Blob> {
    const canvas = document.createElement("canvas");
    canvas.width = PICTURE_WIDTH * SHARP;
    canvas.height = (p.height + HEAD) * SHARP;
    const ctx = canvas.getContext("2d")!;
    ctx.scale(SHARP, SHARP);
    paint(p, ctx);
    return new Promise((done, fail) => canvas.toBlob((b) => (b ? done(b) : fail(new Error("this browser made no picture"))), "image/png"));
}

/* `of` is asked when one is pressed: what is seen then is what is saved. */
export function PictureButtons({ name, of }: { name: string; of: () => Picture }) {
    const png = () => void pngOf(of()).then((b) => saveAs(`${name}.png`, b), (e: Error) => toast(`PNG: ${e.message}`, true));
    return <>
        <button type="button" title="This chart as a picture" onClick={png}>PNG</button>
        <button type="button" title="This chart as a drawing that can be scaled" onClick={() => saveAs(`${name}.svg`, svgOf(of()), "image/svg+xml")}>SVG</button>
    </>;
}
