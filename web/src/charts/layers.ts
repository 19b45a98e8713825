/* A picture in two layers: what is pointed at lies in front, on a canvas of its own, and alone is drawn as the pointer moves. */

export interface Layers<Pen> {
    /* All that the one behind shows; while these stay what they are, it does too. */
    of: readonly unknown[];
    /* In CSS pixels. */
    behind: (pen: Pen, width: number, height: number) => void;
    front?: (pen: Pen, width: number, height: number) => void;
}

export const areSame = (a: readonly unknown[], b: readonly unknown[]): boolean => a.length === b.length && a.every((v, i) => Object.is(v, b[i]));

/* Knows what it has drawn. `behind` and `front` give a pen for a layer that is empty. */
export class Painter<Pen> {
    private was: readonly unknown[] | null = null;

    constructor(private readonly behind: () => Pen, private readonly front: () => Pen) {}

    /* `size`: what of the place changes the layer behind, its width and height first. */
    paint(l: Layers<Pen>, size: readonly [number, number, ...unknown[]]): void {
        const now = [...size, ...l.of], [width, height] = size;
        if (!this.was || !areSame(now, this.was)) l.behind(this.behind(), width, height);
        this.was = now;
        l.front?.(this.front(), width, height);
    }
}
