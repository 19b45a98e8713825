import assert from "node:assert/strict";
import { test } from "node:test";
import { downsample, firstAt, nearest, visible, type Points } from "../../../src/charts/sample";
import { smooth } from "../../../src/charts/smooth";

function wave(n: number): Points {
    const x = Array.from({ length: n }, (_, i) => i);
    return { x, y: x.map((i) => Math.sin(i / 50)) };
}

test("a spike of one point among 100,000 is there, upward and downward", () => {
    const p = wave(100_000);
    p.y[31_415] = 1e6;
    p.y[70_001] = -1e6;
    const out = downsample(p, 0, 99_999, 800);
    assert.ok(out.x.length <= 4 * 800 + 4);
    assert.deepEqual([out.x.includes(31_415), out.x.includes(70_001)], [true, true]);
    assert.ok(out.y.includes(1e6) && out.y.includes(-1e6));
});

test("every column keeps its lowest and highest, and the order stays", () => {
    const p = wave(10_000);
    const out = downsample(p, 0, 9_999, 100);
    for (let i = 1; i < out.x.length; i++) assert.ok(out.x[i - 1]! < out.x[i]!);
    for (let c = 0; c < 100; c++) {
        const mine = p.y.filter((_, i) => Math.floor((i / 9_999) * 100) === c);
        const kept = out.y.filter((_, i) => Math.floor((out.x[i]! / 9_999) * 100) === c);
        assert.equal(Math.max(...kept), Math.max(...mine));
        assert.equal(Math.min(...kept), Math.min(...mine));
    }
    assert.equal(out.x[0], 0);
    assert.equal(out.x.at(-1), 9_999);
});

test("few points come back as they are; what is not finite is left out", () => {
    assert.deepEqual(downsample({ x: [1, 2, 3], y: [5, NaN, 6] }, 0, 10, 100), { x: [1, 3], y: [5, 6] });
    assert.deepEqual(downsample({ x: [], y: [] }, 0, 10, 100), { x: [], y: [] });
    const few = wave(100);
    assert.equal(downsample(few, 0, 99, 100), few); // nothing is copied
    assert.deepEqual(downsample(few, 10, 20, 100), { x: few.x.slice(9, 22), y: few.y.slice(9, 22) });
    const p = wave(5000);
    p.y.fill(NaN, 100, 200);
    assert.ok(downsample(p, 0, 4999, 50).y.every(Number.isFinite));
});

test("a zoomed part has one point beyond each end", () => {
    assert.deepEqual(visible(wave(100), 10, 20), [9, 22]);
    assert.deepEqual(visible(wave(100), -5, 500), [0, 100]);
    assert.deepEqual([firstAt([1, 3, 5], 3), firstAt([1, 3, 5], 3, true), firstAt([], 3)], [1, 2, 0]);
    assert.deepEqual([nearest([1, 3, 9], 5), nearest([1, 3, 9], 8), nearest([1, 3, 9], -1), nearest([], 0)], [1, 2, 0, -1]);
});

test("smoothing: nothing at 0, a constant stays, the first value is not favoured", () => {
    const p = { x: [0, 1, 2, 3], y: [4, 4, 4, 4] };
    assert.equal(smooth(p, 0), p);
    smooth(p, 0.9).y.forEach((v) => assert.ok(Math.abs(v - 4) < 1e-12));
    const jump = smooth({ x: [0, 1, 2, 3], y: [0, 10, 10, 10] }, 0.5).y;
    assert.ok(jump[1]! > 5 && jump[3]! > jump[1]! && jump[3]! < 10);
    assert.deepEqual(smooth({ x: [0, 1, 2], y: [1, NaN, 1] }, 0.5).y, [1, NaN, 1]);
});

test("smoothing goes by the distance in x, not by the number of points", () => {
    const late = smooth({ x: [0, 1, 100], y: [0, 0, 1] }, 0.9).y.at(-1)!;
    const soon = smooth({ x: [0, 99, 100], y: [0, 0, 1] }, 0.9).y.at(-1)!;
    assert.ok(late > soon, `${late} after a long way, ${soon} after a short one`);
});
