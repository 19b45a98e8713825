import assert from "node:assert/strict";
import { test } from "node:test";
import { spreadOf } from "../../../src/charts/spread";
import { collapsed, groupName, groupsOf } from "../../../src/pages/experiment/groups";

const row = (id: number, values: object) => ({ id, values: values as never });
const ROWS = [row(1, { lr: 0.1, seed: 1, loss: 1 }), row(2, { lr: 0.1, seed: 2, loss: 3 }), row(3, { lr: 0.2, seed: 1, loss: 0 }), row(4, { lr: "0.1", seed: 1, loss: null }), row(5, { seed: 9, loss: 5 })];

test("seeds collapse to mean and deviation, the best group first; what has no value counts for nothing", () => {
    const groups = groupsOf(ROWS, ["lr"], "loss", true);
    assert.deepEqual(groups.map((g) => [g.ids, g.spread.n, g.spread.mean]), [[[3], 1, 0], [[1, 2], 2, 2], [[5], 1, 5], [[4], 0, NaN]]);
    assert.deepEqual([groups[1]!.spread.deviation, groups[1]!.spread.lo, groups[1]!.spread.hi], [Math.SQRT2, 1, 3]);
    assert.deepEqual(groupsOf(ROWS, ["lr"], "loss", false).map((g) => g.ids[0]), [5, 1, 3, 4]);
    assert.equal(groupName(["lr"], groups[1]!), "lr 0.1 (n = 2)");
    assert.equal(groupName(["lr"], groups[1]!, 1), "lr 0.1 (n = 1 of 2)");
    assert.deepEqual(groupsOf(ROWS, [], "loss", true).map((g) => g.ids.length), [5]);
    assert.equal(Number.isNaN(spreadOf([1]).deviation), true);
    const many = Array.from({ length: 200_000 }, (_, id) => row(id, { loss: id % 1000 })), [one] = groupsOf(many, [], "loss", true); // more than a call takes arguments
    assert.deepEqual([one!.spread.n, one!.spread.lo, one!.spread.hi, spreadOf([]).lo], [200_000, 0, 999, NaN]);
});

test("curves collapse over those that have got there, between their points too", () => {
    const { points, band } = collapsed([{ x: [0, 10, 20], y: [0, 2, 4] }, { x: [0, 20, 30], y: [2, 6, 7] }]);
    assert.deepEqual(points, { x: [0, 10, 20, 30], y: [1, 3, 5, 7] });
    assert.deepEqual([band.lo[3], band.hi[3], band.hi[0]], [7, 7, 1 + Math.SQRT2]);
    assert.deepEqual(collapsed([]).points, { x: [], y: [] });
    const long = collapsed([{ x: Array.from({ length: 5000 }, (_, i) => i), y: Array(5000).fill(1) }]).points;
    assert.equal(long.x.length <= 1501 && long.x.at(-1) === 4999, true);
});
