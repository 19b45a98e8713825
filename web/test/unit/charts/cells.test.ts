import assert from "node:assert/strict";
import { test } from "node:test";
import { axis } from "../../../src/charts/axes";
import { binAt, binsOf, cellsOf } from "../../../src/charts/cells";
import { cellAt, cellText, gridOf, lightness } from "../../../src/charts/heatmap";
import { chosenAfter } from "../../../src/ui/table/chosen";
import { statNames, withStats } from "../../../src/pages/experiment/stats";
import type { Trial } from "../../../src/pages/experiment/data";

const row = (id: number, values: object) => ({ id, values: values as never });
const ROWS = [row(1, { lr: 0.01, act: "relu", loss: 1 }), row(2, { lr: 0.01, act: "relu", loss: 3 }), row(3, { lr: 0.1, act: "tanh", loss: 5 }),
    row(4, { lr: 0.1, act: "tanh", loss: null }), row(5, { lr: 0.1, act: "relu", loss: null }), row(6, { act: "relu", loss: 9 })];
const lr = axis("lr", ROWS.map((r) => r.values["lr"]), { type: "log" }), act = axis("act", ROWS.map((r) => r.values["act"]), { type: "categorical", vals: ["tanh", "relu", "elu"] });

test("a cell has the mean of those that have a value, and all its trials; who lacks one of the two is in none", () => {
    const [xs, ys] = [binsOf(lr, ROWS), binsOf(act, ROWS)], cells = cellsOf(ROWS, [lr, xs], [act, ys], "loss");
    assert.deepEqual([xs.map((b) => b.label), ys.map((b) => b.label)], [["0.01", "0.1"], ["tanh", "relu", "elu"]]);
    assert.deepEqual(cells.map((c) => [c.x, c.y, c.ids, c.spread.n, c.spread.mean]), [[1, 0, [3, 4], 1, 5], [0, 1, [1, 2], 2, 2], [1, 1, [5], 0, NaN]]);
    const p = { x: lr, y: act, by: "loss", rows: ROWS }, g = gridOf(p);
    assert.deepEqual([g.lo, g.hi], [2, 5]);
    assert.deepEqual(g.cells.map((c) => cellText(p, g, c)), ["lr 0.1 · act tanh · mean loss 5 · 2 trials (1 of them with a value)",
        "lr 0.01 · act relu · mean loss 2 ± 1.4 · 2 trials", "lr 0.1 · act relu · no loss · 1 trial (0 of them with a value)"]);
    assert.deepEqual(gridOf({ ...p, rows: [] }).cells, []);
    assert.deepEqual([cellAt(g, 600, -1, -1), cellAt(g, 600, 599, 9999)], [undefined, undefined]);
    const found = new Set(Array.from({ length: 600 * 60 }, (_, i) => cellAt(g, 600, i % 600, 10 * Math.floor(i / 600))).filter(Boolean));
    assert.equal(found.size, g.cells.length);
});

test("of many values equal parts of the axis, of a logarithm equal factors; each value lies in one", () => {
    const rows = Array.from({ length: 100 }, (_, i) => row(i, { lr: Math.pow(10, -4 + i * 0.04), wd: i })), log = axis("lr", rows.map((r) => r.values["lr"]), { type: "log" });
    const bins = binsOf(log, rows), flat = binsOf(axis("wd", rows.map((r) => r.values["wd"])), rows);
    assert.equal(bins.length, 8);
    for (const b of bins) assert.ok(Math.abs(b.hi / b.lo / Math.pow(10, 3.96 / 8) - 1) < 1e-9, b.label);
    assert.deepEqual(flat.map((b) => b.hi - b.lo), Array(8).fill(99 / 8));
    for (const r of rows) assert.ok(binAt(bins, r.values["lr"] as number) >= 0, `${r.values["lr"]}`);
    assert.deepEqual([binAt(bins, NaN), binAt(bins, 1e9), binAt(flat, 0), binAt(flat, 99), binAt([], 1)], [-1, -1, 0, 7, -1]);
    assert.equal(cellsOf(rows, [log, bins], [log, bins], "wd").reduce((n, c) => n + c.ids.length, 0), 100);
});

test("parts that lie close together are told apart", () => {
    const near = Array.from({ length: 50 }, (_, i) => row(i, { lr: 0.1 + i * 2e-5, seed: 1_000_000 + (i % 3) }));
    const labels = (name: string) => binsOf(axis(name, near.map((r) => r.values[name])), near).map((b) => b.label);
    assert.equal(new Set(labels("lr")).size, 8);
    assert.deepEqual(labels("seed"), ["1e6", "1.000001e6", "1.000002e6"]);
});

test("the good ones are light; one mean alone is in the middle; none is grey", () => {
    assert.deepEqual([lightness({ lo: 1, hi: 3 }, 1, true), lightness({ lo: 1, hi: 3 }, 1, false), lightness({ lo: 2, hi: 2 }, 2, true)], [1, 0, 0.5]);
    assert.ok([NaN].every((v) => Number.isNaN(lightness({ lo: 1, hi: 3 }, v, true)) && Number.isNaN(lightness({ lo: NaN, hi: NaN }, v, false))));
});

test("a press chooses all of a cell, another one none of it", () => {
    assert.deepEqual([chosenAfter([9], [2, 1]), chosenAfter([1, 9], [1, 2]), chosenAfter([1, 2, 9], [1, 2])], [[1, 2, 9], [1, 2, 9], [9]]);
});

test("any metric as a number of a trial", () => {
    const trials = [{ id: 1, summaryMetrics: { validation_metrics: { "top.5": { min: 0.5, max: "NaN" } }, own: { x: { last: 2 } } } }, { id: 2, summaryMetrics: null }] as unknown as Trial[];
    assert.deepEqual(statNames([{ group: "own", name: "x" }]), ["own.x.last", "own.x.min", "own.x.max", "own.x.mean"]);
    const rows = withStats([row(1, { lr: 1 }), row(2, { lr: 2 })], trials, ["validation.top.5.min", "validation.top.5.max", "own.x.last"]);
    assert.deepEqual(rows.map((r) => ({ ...r.values })), [{ lr: 1, "validation.top.5.min": 0.5, "validation.top.5.max": null, "own.x.last": 2 },
        { lr: 2, "validation.top.5.min": null, "validation.top.5.max": null, "own.x.last": null }]);
});
