import assert from "node:assert/strict";
import { test } from "node:test";
import { spreadOf } from "../../../src/charts/spread";
import { firstAt, type Points } from "../../../src/charts/sample";
import { collapsed, collapsedAll, packed } from "../../../src/charts/work/collapse";
import { groupName, groupsOf } from "../../../src/pages/experiment/groups";

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

/* The same, as it reads: of each x anew where it lies in each curve. */
function plainly(curves: Points[]): [number, number, number, number][] {
    const at = (p: Points, x: number): number => {
        const i = firstAt(p.x, x);
        if (p.x[i] === x) return p.y[i]!;
        return i === 0 || i >= p.x.length ? NaN : p.y[i - 1]! + (x - p.x[i - 1]!) / (p.x[i]! - p.x[i - 1]!) * (p.y[i]! - p.y[i - 1]!);
    };
    const xs = [...new Set(curves.flatMap((c) => c.x))].filter((x) => !Number.isNaN(x)).sort((a, b) => a - b), every = Math.max(1, Math.ceil(xs.length / 1500));
    return xs.filter((_, i) => !(i % every) || i === xs.length - 1).flatMap((x) => {
        const s = spreadOf(curves.map((c) => at(c, x)).filter(Number.isFinite)), d = Number.isNaN(s.deviation) ? 0 : s.deviation;
        return s.n ? [[x, s.mean, s.mean - d, s.mean + d] as [number, number, number, number]] : [];
    });
}

test("curves that are walked side by side give what looking each place up gives", () => {
    let seed = 7;
    const chance = () => (seed = (seed * 16807) % 2147483647) / 2147483647;
    for (const most of [0, 1, 3, 40, 900]) {
        const curves = Array.from({ length: 12 }, (): Points => {
            const x = Array.from({ length: Math.floor(chance() * (most + 1)) }, () => Math.floor(chance() * 5000) / (chance() < 0.5 ? 1 : 3) - 100).sort((a, b) => a - b); // some twice
            return { x, y: x.map(() => (chance() < 0.02 ? NaN : chance() - 0.5)) };
        });
        const { points, band } = collapsed(curves);
        assert.deepEqual(points.x.map((x, i) => [x, points.y[i]!, band.lo[i]!, band.hi[i]!]), plainly(curves), `of at most ${most} points`);
        const parts = [curves.slice(0, 3), [], curves.slice(3)];
        assert.deepEqual(collapsedAll(packed(parts)), parts.map(collapsed), "as they go to a worker");
    }
    assert.deepEqual(collapsed([{ x: [NaN, NaN], y: [1, 2] }, { x: [-0, 1], y: [3, 4] }, { x: [0], y: [5] }]).points, { x: [-0, 1], y: [4, 4] });
});
