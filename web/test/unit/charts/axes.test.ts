import assert from "node:assert/strict";
import { test } from "node:test";
import { axis, axisScale, declared, flat, position, varying } from "../../../src/charts/axes";
import { brushed, unbrushed, within } from "../../../src/charts/brush";
import { markOf } from "../../../src/charts/parallel";
import { toValue } from "../../../src/charts/scales";

test("a tree becomes names with dots, lists their JSON", () => {
    assert.deepEqual({ ...flat({ lr: 0.1, net: { width: 8, act: "relu" }, dims: [1, 2], none: null }) },
        { lr: 0.1, "net.width": 8, "net.act": "relu", dims: "[1,2]", none: null });
    assert.deepEqual({ ...flat(null) }, {});
    const hostile = flat(JSON.parse('{"__proto__": {"x": 1}, "constructor": 2}'));
    assert.deepEqual(Object.keys(hostile), ["__proto__.x", "constructor"]);
    assert.equal(({} as Record<string, unknown>)["x"], undefined);
});

test("only what varies is a column", () => {
    const rows = [{ lr: 0.1, width: 8, act: "relu" }, { lr: 0.2, width: 8, act: "relu" }, { lr: 0.2, width: 8 }].map((r) => flat(r));
    assert.deepEqual(varying(rows), ["act", "lr"]);
    assert.deepEqual(varying([flat({ a: 1 }), flat({ a: "1" })]), ["a"]);
    assert.deepEqual(varying([]), []);
});

test("axes go as the hyperparameters were declared", () => {
    const d = declared({ lr: { type: "log", minval: -5, maxval: -1 }, net: { act: { type: "categorical", vals: ["relu", "tanh"] } }, k: 3 });
    assert.deepEqual(Object.keys(d), ["lr", "net.act"]);
    assert.deepEqual(axis("lr", [1e-4, 0.1, undefined], d["lr"]), { name: "lr", kind: "log", lo: 1e-4, hi: 0.1, categories: [] });
    const act = axis("net.act", ["tanh", "elu"], d["net.act"]);
    assert.deepEqual([act.kind, act.categories, act.hi], ["category", ["relu", "tanh", "elu"], 2]);
    assert.deepEqual(axis("flag", [true, false]).categories, ["false", "true"]);
    assert.equal(axis("lr", [0, 1], { type: "log" }).kind, "linear");
    assert.equal(axis("none", [undefined, null]).kind, "category");
    assert.deepEqual([position(act, "elu"), position(act, "gelu"), position(act, undefined)], [2, NaN, NaN]);
});

test("brushes: all must hold; a row without the value lies outside", () => {
    const rows = [{ lr: 0.1, act: "a" }, { lr: 0.5, act: "b" }, { act: "a" }].map((r) => flat(r));
    const axes = [axis("lr", rows.map((r) => r["lr"])), axis("act", rows.map((r) => r["act"]))];
    const hit = (b: Parameters<typeof within>[2]) => rows.map((r) => within(r, axes, b));
    assert.deepEqual(hit([]), [true, true, true]);
    assert.deepEqual(hit([{ name: "lr", lo: 0, hi: 0.2 }]), [true, false, false]);
    assert.deepEqual(hit([{ name: "act", lo: -0.5, hi: 0.5 }]), [true, false, true]);
    assert.deepEqual(hit([{ name: "lr", lo: 0, hi: 1 }, { name: "act", lo: 1, hi: 1 }]), [false, true, false]);
    assert.deepEqual(hit([{ name: "gone", lo: 0, hi: 1 }]), [true, true, true]);
    const one = brushed([{ name: "lr", lo: 0, hi: 1 }], { name: "lr", lo: 3, hi: 2 });
    assert.deepEqual(one, [{ name: "lr", lo: 2, hi: 3 }]);
    assert.deepEqual(unbrushed(one, "lr"), []);
});

test("a drag to an end of an axis marks the trial that lies there, one between leaves out nothing that it passed", () => {
    const [top, bottom] = [12, 288];
    for (const [values, type] of [[[0.12345678, 0.5, 0.98764], undefined], [[1.23456e-5, 1e-3, 0.0987654], "log"], [[3, 4096, 16384], undefined], [[-16384, -3], undefined], [["a", "b", "c"], undefined], [[0.98764, 0.98764], undefined]] as const) {
        const a = axis("x", [...values], { type }), rows = values.map((x) => flat({ x })), inside = (from: number, to: number) => rows.map((r) => within(r, [a], [markOf(a, from, to)]));
        assert.deepEqual([inside(top, 150).at(-1), inside(150, top - 8).at(-1)], [true, true], `the upper end of ${values}`);
        assert.deepEqual([inside(150, bottom)[0], inside(bottom + 8, 150)[0]], [true, true], `the lower end of ${values}`);
        assert.deepEqual(inside(top, bottom), rows.map(() => true), `${values}`);
        const scale = axisScale(a, bottom, top);
        for (let y = top + 1; y < bottom - 10; y++) {
            const b = markOf(a, y, y + 10);
            assert.ok(b.lo <= toValue(scale, y + 10) && b.hi >= toValue(scale, y), `${values}: ${b.lo}..${b.hi} at ${y}`);
        }
    }
    const of = axis("x", [0.12345678, 0.98764321]);
    assert.deepEqual(markOf(of, top - 5, bottom + 5), { name: "x", lo: of.lo, hi: of.hi });
    assert.deepEqual(markOf(axis("x", [0, 1]), 100, 200), { name: "x", lo: 0.3188, hi: 0.6812 });
});
