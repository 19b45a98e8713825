import assert from "node:assert/strict";
import { test } from "node:test";
import { axis } from "../../../src/charts/axes";
import { brief, gridOf, heatLayers, leastOf } from "../../../src/charts/heatmap";
import { Painter, type Layers } from "../../../src/charts/layers";
import { parallelLayers, type Row } from "../../../src/charts/parallel";
import type { Pen } from "../../../src/charts/pen";
import { nextDot, scatterLayers } from "../../../src/charts/scatter";
import { axisScale } from "../../../src/charts/axes";
import { leftOf } from "../../../src/charts/tip";

Object.assign(globalThis, { document: { documentElement: {} }, getComputedStyle: () => ({ getPropertyValue: () => "#123456" }) });

/* A pen that counts what is drawn with it. */
class Counter {
    drawn = 0;
    readonly pen = new Proxy({}, {
        get: (_, name) => (name === "measureText" ? () => ({ width: 10 }) : () => { if (/^(stroke|fill)/.test(String(name))) this.drawn++; }),
        set: () => true,
    }) as Pen;
}

function counted(): { behind: Counter; front: Counter; paint: (l: Layers<Pen>, width?: number) => void } {
    const behind = new Counter(), front = new Counter(), painter = new Painter<Pen>(() => behind.pen, () => front.pen);
    return { behind, front, paint: (l, width = 800) => painter.paint(l, [width, 300, 1, false]) };
}

const N = 1000;
const rows = Array.from({ length: N }, (_, i): Row => ({ id: i + 1, values: { lr: (i % 10) / 10, width: 8 * (1 + i % 7), loss: i / N } }));
const [lr, width, loss] = ["lr", "width", "loss"].map((n) => axis(n, rows.map((r) => r.values[n]))) as [ReturnType<typeof axis>, ReturnType<typeof axis>, ReturnType<typeof axis>];
const grid = gridOf({ x: lr, y: width, by: "loss", rows });
type Of = (hover: number | null, chosen?: number[]) => Layers<Pen>;
const CHARTS: Record<string, { of: Of; least: number; one: number }> = {
    parallel: { of: (hover, chosen = []) => parallelLayers({ axes: [lr, width, loss], rows, brushes: chosen.map((n) => ({ name: "lr", lo: 0, hi: n })), smallerIsBetter: true, hover }), least: N, one: 1 },
    scatter: { of: (hover, chosen = []) => scatterLayers({ x: lr, y: width, by: loss, rows, smallerIsBetter: true, hover, chosen }), least: 2 * N, one: 2 },
    heat: { of: (hover, chosen = []) => heatLayers({ x: lr, y: width, by: "loss", rows, smallerIsBetter: true, hover, chosen }, grid), least: grid.cells.length, one: 1 },
};

for (const [name, { of, least, one }] of Object.entries(CHARTS))
    test(`${name}: a pointer that goes over it draws what it points at, and nothing else again`, () => {
        const { behind, front, paint } = counted();
        paint(of(null));
        const once = behind.drawn;
        assert.ok(once >= least && front.drawn === 0, `${once}, ${front.drawn}`);
        for (let id = 1; id <= 100; id++) paint(of(id));
        paint(of(null));
        paint(of(N + 1)); // of another chart
        assert.deepEqual([behind.drawn, front.drawn], [once, 100 * one]);
    });

for (const [name, { of }] of Object.entries(CHARTS))
    test(`${name}: what lies behind is drawn anew where it has changed: what is chosen, or its size`, () => {
        const { behind, paint } = counted();
        const after: number[] = [];
        for (const [l, w] of [[of(1), 800], [of(1, [1]), 800], [of(2, [1]), 800], [of(2, [1]), 700], [of(2), 700]] as const) {
            paint(l, w);
            after.push(behind.drawn);
        }
        assert.deepEqual(after.map((n, i) => i > 0 && n > after[i - 1]!), [false, true, false, true, true]);
    });

test("what is written beside the dots lies within the picture, however long it is", () => {
    const beside = (y: ReturnType<typeof axis>, of: Row[]) => {
        const at: [string, number][] = [];
        let align = "";
        const pen = new Proxy({}, { get: (_, name) => (text: string, x: number) => { if (name === "fillText" && align === "right") at.push([text, x]); }, set: (_, name, v) => { if (name === "textAlign") align = v; return true; } }) as Pen;
        scatterLayers({ x: lr, y, by: loss, rows: of, smallerIsBetter: true, hover: null, chosen: [] }).behind(pen, 800, 300);
        return at;
    };
    const large = rows.map((r) => ({ ...r, values: { ...r.values, large: 123_456_789 + r.id } })), words = rows.map((r) => ({ ...r, values: { ...r.values, word: ["MOMENTUM WWW", "adam"][r.id % 2]! } }));
    const texts = [...beside(axis("large", large.map((r) => r.values["large"])), large), ...beside(axis("word", words.map((r) => r.values["word"])), words)];
    assert.ok(texts.some(([t]) => t.length > 8 && /^\d/.test(t)) && texts.some(([t]) => t === "MOMENTUM WWW"), String(texts));
    for (const [text, x] of texts) assert.ok(x >= 6.7 * text.length && (text !== "MOMENTUM WWW" || x >= 115), `${text} ends at ${x}`); // so wide is it in 12 px
});

test("a map has room for a finger in each cell; words beside a point stay within the chart", () => {
    assert.ok(leastOf(grid) >= 24 * grid.xs.length + 56 && leastOf({ ...grid, xs: [] }) < 100);
    assert.deepEqual([200, 60, 30].map((px) => brief("0.004 … 0.0057", px)), ["0.004 … 0.0057", "0.004 …", "0.0…"]);
    assert.deepEqual([brief("relu", 70), brief("a long name", 40)], ["relu", "a lo…"]);
    assert.deepEqual([leftOf(0, 300), leftOf(150, 300), leftOf(310, 300), leftOf(-5, 300), leftOf(5, 0)], [0, 50, 100, 0, 50]);
});

test("keys go from dot to dot, across or up, and stay at the last", () => {
    const rows: Row[] = [{ id: 1, values: { a: 3, b: 1 } }, { id: 2, values: { a: 1, b: 2 } }, { id: 3, values: { a: 2, b: null } }, { id: 4, values: { a: 2, b: 0 } }];
    const x = axis("a", rows.map((r) => r.values["a"])), y = axis("b", rows.map((r) => r.values["b"])), p = { x, y, rows };
    const go = (id: number | null, along: 0 | 1, by: -1 | 1) => nextDot(p, [axisScale(x, 0, 100), axisScale(y, 100, 0)], id, along, by)?.row.id;
    assert.deepEqual([go(null, 0, 1), go(2, 0, 1), go(4, 0, 1), go(1, 0, 1), go(2, 0, -1), go(4, 1, -1), go(2, 1, 1)], [2, 4, 1, 1, 2, 1, 1]);
    assert.equal(nextDot({ ...p, rows: [] }, [axisScale(x, 0, 100), axisScale(y, 100, 0)], null, 0, 1), null);
});
