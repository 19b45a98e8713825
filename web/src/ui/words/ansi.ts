/* ANSI's colours as classes of spans. The text stays text: nothing here makes HTML, and no other escape does anything. */

export interface Span {
    text: string;
    /* Names of classes: "b" bold, "d" faint, "i" italic, "u" underlined, "f0".."f15" and "g0".."g15" colours. */
    classes: string[];
}

interface Style {
    bold: boolean;
    faint: boolean;
    italic: boolean;
    under: boolean;
    fore: number;
    back: number;
}

const PLAIN: Style = { bold: false, faint: false, italic: false, under: false, fore: -1, back: -1 };
// CSI ... final, OSC ... BEL or ESC \, then any other escape of two signs.
const ESCAPE = /\x1b\[([0-9;:?]*)[ -/]*([@-~])|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_=>78]/g;
// What a terminal would act on or hide, and marks that turn the direction of what follows.
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/* Control characters made visible (U+240x), so that no line lies about what it holds. */
export function visible(text: string): string {
    return text.replace(CONTROL, (c) => {
        const n = c.charCodeAt(0);
        if (n < 0x20) return String.fromCharCode(0x2400 + n);
        return n === 0x7f ? "\u2421" : "\ufffd";
    });
}

function classes(s: Style): string[] {
    const out: string[] = [];
    if (s.bold) out.push("b");
    if (s.faint) out.push("d");
    if (s.italic) out.push("i");
    if (s.under) out.push("u");
    if (s.fore >= 0) out.push(`f${s.fore}`);
    if (s.back >= 0) out.push(`g${s.back}`);
    return out;
}

/* One of 16 for one of 256: those of the cube and the greys go to the nearest. */
function nearest(n: number): number {
    if (!(n >= 0 && n <= 255)) return -1;
    if (n < 16) return n;
    if (n >= 232) return n < 238 ? 8 : n < 248 ? 7 : 15;
    const [r, g, b] = [Math.floor((n - 16) / 36), Math.floor((n - 16) / 6) % 6, (n - 16) % 6];
    return rgb(r / 5, g / 5, b / 5);
}

function rgb(r: number, g: number, b: number): number {
    const most = Math.max(r, g, b);
    if (most < 0.2) return 0;
    const bits = (r > most / 2 ? 1 : 0) | (g > most / 2 ? 2 : 0) | (b > most / 2 ? 4 : 0);
    return bits + (most > 0.75 ? 8 : 0);
}

/* 38;5;N and 38;2;R;G;B: the colour and how many numbers it took. */
function extended(codes: number[], i: number): [number, number] {
    if (codes[i + 1] === 5) return [nearest(codes[i + 2] ?? -1), 2];
    if (codes[i + 1] !== 2) return [-1, 0];
    const [r = 0, g = 0, b = 0] = codes.slice(i + 2, i + 5);
    return [rgb(r / 255, g / 255, b / 255), 4];
}

function colour(s: Style, c: number): void {
    if (c >= 30 && c <= 37) s.fore = c - 30;
    else if (c >= 90 && c <= 97) s.fore = c - 90 + 8;
    else if (c === 39) s.fore = -1;
    else if (c >= 40 && c <= 47) s.back = c - 40;
    else if (c >= 100 && c <= 107) s.back = c - 100 + 8;
    else if (c === 49) s.back = -1;
}

function apply(style: Style, list: string): Style {
    const s = { ...style };
    const codes = list.split(/[;:]/).map((t) => Number(t || "0"));
    for (let i = 0; i < codes.length; i++) {
        const c = codes[i]!;
        if (c === 0) Object.assign(s, PLAIN);
        else if (c === 1) s.bold = true;
        else if (c === 2) s.faint = true;
        else if (c === 3) s.italic = true;
        else if (c === 4) s.under = true;
        else if (c === 22) s.bold = s.faint = false;
        else if (c === 23) s.italic = false;
        else if (c === 24) s.under = false;
        else if (c === 38 || c === 48) {
            const [n, took] = extended(codes, i);
            if (c === 38) s.fore = n;
            else s.back = n;
            i += took;
        } else colour(s, c);
    }
    return s;
}

/* What a terminal would show in the end where a line was written over by carriage returns (progress bars). */
function overwritten(line: string): string {
    const parts = line.replace(/\r+$/, "").split("\r");
    return parts[parts.length - 1]!;
}

/* The spans of one line of a log. */
export function spans(line: string): Span[] {
    const text = overwritten(line);
    const out: Span[] = [];
    let style = PLAIN;
    let at = 0;
    const add = (until: number): void => {
        if (until > at) out.push({ text: visible(text.slice(at, until)), classes: classes(style) });
    };
    for (const m of text.matchAll(ESCAPE)) {
        add(m.index);
        at = m.index + m[0].length;
        if (m[2] === "m" && m[1] !== undefined && !m[1].includes("?")) style = apply(style, m[1]);
    }
    add(text.length);
    return out;
}

/* The line without its escapes: what is searched, copied and downloaded. */
export function plain(line: string): string {
    return visible(overwritten(line).replace(ESCAPE, ""));
}
