import assert from "node:assert/strict";
import { test } from "node:test";
import { axis, declared, flat, position, varying } from "../../src/charts/axes";
import { brushed, unbrushed, within } from "../../src/charts/brush";

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
