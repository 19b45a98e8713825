/* Colours that stay apart for protan and deutan eyes, in both themes; the same id has the same colour everywhere. */

/* Near Okabe and Ito's, moved until a search found each pair far enough apart (test/unit/charts/palette.test.ts measures it). */
const DARK_ON_LIGHT = [
    "#1f469f", "#f75b00", "#299b6c", "#bd739f", "#72297e", "#a6572d", "#403a38", "#3f80c6", "#531d00", "#75727c",
];
const LIGHT_ON_DARK = [
    "#53bdf0", "#eb7d0f", "#38d676", "#f08fc5", "#9385f3", "#ebe231", "#e2d0c8", "#2f6fd1", "#d13f19", "#6fa587",
];
const DASHES: number[][] = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

export function palette(dark: boolean): readonly string[] {
    return dark ? LIGHT_ON_DARK : DARK_ON_LIGHT;
}

export function colourOf(id: number, dark: boolean): string {
    const p = palette(dark);
    return p[((id % p.length) + p.length) % p.length]!;
}

/* Colour alone never tells two apart: of those that are drawn together and have one colour, each but the first is dashed. */
export function dashesOf(ids: readonly number[]): Map<number, readonly number[]> {
    const before = new Map<string, number>(), all = new Map<number, readonly number[]>();
    for (const id of [...ids].sort((a, b) => a - b)) {
        const colour = colourOf(id, false), n = before.get(colour) ?? 0;
        all.set(id, DASHES[n % DASHES.length]!);
        before.set(colour, n + 1);
    }
    return all;
}

export type Rgb = [number, number, number];

export function rgbOf(hex: string): Rgb {
    const n = parseInt(hex.slice(1), 16);
    return [(n >> 16) & 255, (n >> 8) & 255, n & 255];
}

/* Blue to yellow through grey (as cividis): lightness grows with the value, so it reads without hue. */
const STEPS: Rgb[] = [[0, 34, 78], [53, 69, 108], [102, 105, 112], [148, 142, 119], [200, 184, 102], [253, 231, 55]];

/* Of a share in [0, 1]. On a dark page the darkest steps are left out. */
function mixed(part: number, dark: boolean): Rgb {
    const least = dark ? 0.25 : 0;
    const most = dark ? 1 : 0.85; // the palest yellow cannot be seen on white
    const at = (least + Math.min(1, Math.max(0, part)) * (most - least)) * (STEPS.length - 1);
    const i = Math.min(STEPS.length - 2, Math.floor(at));
    const [from, to] = [STEPS[i]!, STEPS[i + 1]!];
    return from.map((c, k) => Math.round(c + (to[k]! - c) * (at - i))) as Rgb;
}

/* What is not finite is grey. */
export function heat(part: number, dark: boolean): string {
    return Number.isFinite(part) ? `rgb(${mixed(part, dark).join(",")})` : dark ? "#777777" : "#999999";
}

const linear = (c: number): number => (c <= 10 ? c / 255 / 12.92 : Math.pow((c / 255 + 0.055) / 1.055, 2.4));

export function luminance([r, g, b]: Rgb): number {
    return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

/* Text on it: of black and white what stands out more. */
export function onHeat(part: number, dark: boolean): string {
    const l = luminance(Number.isFinite(part) ? mixed(part, dark) : rgbOf(heat(NaN, dark)));
    return (l + 0.05) / 0.05 >= 1.05 / (l + 0.05) ? "#000000" : "#ffffff";
}
