/* Parts of axes that a reader has marked, and what lies within all of them. */
import { position, type Axis, type Value } from "./axes";

/* Of an axis's numbers (categories: indices), both ends included. */
export interface Brush {
    name: string;
    lo: number;
    hi: number;
}

/* Whether a row lies within every brush. A row without the value lies outside; a brush of no known axis says nothing. */
export function within(row: Record<string, Value>, axes: Axis[], brushes: Brush[]): boolean {
    return brushes.every((b) => {
        const a = axes.find((x) => x.name === b.name);
        if (!a) return true;
        const at = position(a, row[b.name]);
        return at >= b.lo && at <= b.hi;
    });
}

/* The brushes with one more; it takes the place of the axis's old one. */
export function brushed(brushes: Brush[], b: Brush): Brush[] {
    const ends = b.lo <= b.hi ? b : { name: b.name, lo: b.hi, hi: b.lo };
    return [...brushes.filter((x) => x.name !== b.name), ends];
}

export function unbrushed(brushes: Brush[], name: string): Brush[] {
    return brushes.filter((b) => b.name !== name);
}
