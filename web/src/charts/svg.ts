/* A pen that writes SVG: every stroke and text stays one of its own, so the picture can be scaled and edited. */
import type { Pen } from "./pen";

const BROKEN = /[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|\p{Surrogate}/gu; // no XML may hold these
const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", "\"": "&quot;" };
const LETTER = 0.56; // of the type's size: how wide a letter is about

export function escaped(text: string): string {
    return text.replace(BROKEN, "\ufffd").replace(/[&<>"]/g, (c) => ESCAPES[c]!);
}

/* As attributes: where a file is shown within a page, that page may forbid styles. */
function fontOf(font: string): string {
    const [, weight, size, family] = /^(?:(\w+) )?(\d+)px (.+)$/.exec(font) ?? [];
    return `${weight ? ` font-weight="${weight}"` : ""} font-size="${size ?? 10}" font-family="${escaped(family ?? "sans-serif")}"`;
}

const short = (v: number): string => String(Math.round(v * 100) / 100 + 0);

interface Style {
    fillStyle: Pen["fillStyle"]; strokeStyle: Pen["strokeStyle"]; lineWidth: number; lineJoin: CanvasLineJoin; globalAlpha: number; font: string;
    textAlign: CanvasTextAlign; textBaseline: CanvasTextBaseline; dash: number[];
}
const PLAIN: Style = { fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, lineJoin: "miter", globalAlpha: 1, font: "10px sans-serif", textAlign: "start",
    textBaseline: "alphabetic", dash: [] };
const ANCHORS: Partial<Record<CanvasTextAlign, string>> = { center: "middle", right: "end", end: "end" };

export class SvgPen implements Pen {
    fillStyle = PLAIN.fillStyle;
    strokeStyle = PLAIN.strokeStyle;
    lineWidth = PLAIN.lineWidth;
    lineJoin = PLAIN.lineJoin;
    globalAlpha = PLAIN.globalAlpha;
    font = PLAIN.font;
    textAlign = PLAIN.textAlign;
    textBaseline = PLAIN.textBaseline;
    private dash: number[] = [];
    private path = "";
    private readonly out: string[] = [];
    private readonly saved: { style: Style; groups: number }[] = [];
    private groups = 0; // open ones
    private clips = 0;

    private opacity(): string {
        return this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : "";
    }

    private open(attribute: string): void {
        this.out.push(`<g ${attribute}>`);
        this.groups++;
    }

    save(): void {
        const { fillStyle, strokeStyle, lineWidth, lineJoin, globalAlpha, font, textAlign, textBaseline, dash } = this;
        this.saved.push({ style: { fillStyle, strokeStyle, lineWidth, lineJoin, globalAlpha, font, textAlign, textBaseline, dash }, groups: this.groups });
    }

    restore(): void {
        const to = this.saved.pop();
        if (!to) return;
        for (; this.groups > to.groups; this.groups--) this.out.push("</g>");
        Object.assign(this, to.style);
    }

    translate(x: number, y: number): void {
        this.open(`transform="translate(${short(x)} ${short(y)})"`);
    }

    clip(): void {
        const id = `clip${++this.clips}`;
        this.out.push(`<clipPath id="${id}"><path d="${this.path}"/></clipPath>`);
        this.open(`clip-path="url(#${id})"`);
    }

    setLineDash(dash: Iterable<number>): void {
        this.dash = [...dash];
    }

    beginPath(): void {
        this.path = "";
    }

    moveTo(x: number, y: number): void {
        this.path += `M${short(x)} ${short(y)}`;
    }

    lineTo(x: number, y: number): void {
        this.path += `${this.path ? "L" : "M"}${short(x)} ${short(y)}`;
    }

    rect(x: number, y: number, w: number, h: number): void {
        this.path += `M${short(x)} ${short(y)}h${short(w)}v${short(h)}h${short(-w)}z`;
    }

    /* Whole circles are all that a chart draws. */
    arc(x: number, y: number, r: number): void {
        const way = `a${short(r)} ${short(r)} 0 1 0 `;
        this.path += `M${short(x - r)} ${short(y)}${way}${short(2 * r)} 0${way}${short(-2 * r)} 0z`;
    }

    stroke(): void {
        if (!this.path) return;
        const dash = this.dash.length ? ` stroke-dasharray="${this.dash.map(short).join(" ")}"` : "";
        this.out.push(`<path d="${this.path}" fill="none" stroke="${escaped(String(this.strokeStyle))}" stroke-width="${short(this.lineWidth)}"` +
            ` stroke-linejoin="${this.lineJoin}"${dash}${this.opacity()}/>`);
    }

    fill(): void {
        if (this.path) this.out.push(`<path d="${this.path}" fill="${escaped(String(this.fillStyle))}"${this.opacity()}/>`);
    }

    private ownPath(x: number, y: number, w: number, h: number, work: () => void): void {
        const before = this.path;
        this.path = "";
        this.rect(x, y, w, h);
        work();
        this.path = before;
    }

    fillRect(x: number, y: number, w: number, h: number): void {
        this.ownPath(x, y, w, h, () => this.fill());
    }

    strokeRect(x: number, y: number, w: number, h: number): void {
        this.ownPath(x, y, w, h, () => this.stroke());
    }

    fillText(text: string, x: number, y: number): void {
        const anchor = ANCHORS[this.textAlign], middle = this.textBaseline === "middle" ? ` dominant-baseline="central"` : "";
        this.out.push(`<text x="${short(x)}" y="${short(y)}"${fontOf(this.font)} fill="${escaped(String(this.fillStyle))}"` +
            `${anchor ? ` text-anchor="${anchor}"` : ""}${middle}${this.opacity()}>${escaped(text)}</text>`);
    }

    /* About: a file is not laid out yet. */
    measureText(text: string): { width: number } {
        return { width: text.length * LETTER * Number(/(\d+)px/.exec(this.font)?.[1] ?? 10) };
    }

    text(width: number, height: number, title: string): string {
        const end = "</g>".repeat(this.groups);
        return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img">` +
            `<title>${escaped(title)}</title>\n${this.out.join("\n")}${end}\n</svg>\n`;
    }
}
