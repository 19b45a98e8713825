import assert from "node:assert/strict";
import { test } from "node:test";
import { axis, flat } from "../../../src/charts/axes";
import { importance, ranks } from "../../../src/charts/importance";
import { distance } from "../../../src/charts/parallel";
import { csv } from "../../../src/ui/words/save";
import { waitMs } from "../../../src/state/live";

test("equal values share a rank", () => {
    assert.deepEqual(ranks([10, 30, 20, 20]), [1, 4, 2.5, 2.5]);
    assert.deepEqual(ranks([]), []);
});

test("what decides the metric weighs 1, what does not weighs little, and n says on how much it rests", () => {
    const rows = Array.from({ length: 40 }, (_, i) => flat({ lr: Math.exp(i), noise: (i * 17) % 40, act: i < 20 ? "a" : "b", loss: -i }));
    const of = (name: string) => importance(axis(name, rows.map((r) => r[name])), rows, "loss");
    assert.equal(of("lr").weight, -1);
    assert.equal(of("lr").n, 40);
    assert.ok(Math.abs(of("noise").weight) < 0.4);
    assert.ok(of("act").weight > 0.8 && !of("act").isSigned);
    assert.ok(Number.isNaN(importance(axis("lr", [1, 2]), rows.slice(0, 2), "loss").weight));
    assert.equal(importance(axis("lr", []), [flat({ lr: 1 }), flat({ loss: NaN })], "loss").n, 0);
});

test("the distance from a line of parallel coordinates", () => {
    assert.equal(distance([0, 100], [0, 50], 50, 30), 5);
    assert.equal(distance([0, 100], [0, 50], 150, 30), Infinity);
    assert.equal(distance([0, 100], [0, NaN], 50, 30), Infinity);
});

test("tables as CSV: quotes, lines, and nothing that a spreadsheet would run", () => {
    assert.equal(csv(["a", 'b"c'], [[1, "x,y"], [null, "=HYPERLINK(1)"], [-2, "-2"]]), 'a,"b""c"\r\n1,"x,y"\r\n,\'=HYPERLINK(1)\r\n-2,\'-2\r\n');
});

test("failed questions are asked again more and more seldom", () => {
    assert.deepEqual([0, 1, 2, 10, 1e9].map((n) => waitMs(1000, n)), [1000, 2000, 4000, 30000, 30000]);
});
