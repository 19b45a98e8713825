import assert from "node:assert/strict";
import { test } from "node:test";
import { roomFor, upwards } from "../../../src/charts/frame";
import { numbers } from "../../../src/ui/words/format";
import { extent, isRange, narrowed, padded, panned, pixels, scale, share, toPixel, toValue } from "../../../src/charts/scales";
import { niceStep, ticks } from "../../../src/charts/ticks";

const near = (a: number, b: number) => assert.ok(Math.abs(a - b) <= 1e-9 * Math.max(1, Math.abs(b)), `${a} is not ${b}`);

test("values go to pixels and back", () => {
    for (const [kind, lo, hi] of [["linear", -3, 7], ["log", 1e-5, 10], ["time", 1.7e12, 1.8e12]] as const) {
        const s = scale(kind, lo, hi, 40, 640);
        near(toPixel(s, lo), 40);
        near(toPixel(s, hi), 640);
        for (const p of [40, 123, 640]) near(toPixel(s, toValue(s, p)), p);
    }
    near(toPixel(scale("linear", 0, 1, 300, 0), 0.25), 225);
    near(share(scale("log", 1, 100, 0, 1), 10), 0.5);
});

test("ends that no scale can have", () => {
    const flat = scale("linear", 5, 5, 0, 100);
    near(toPixel(flat, 5), 50);
    near(toPixel(scale("log", 5, 5, 0, 100), 5), 50);
    near(toPixel(scale("category", 0, 0, 0, 100), 0), 50);
    assert.equal(scale("log", 0, 10, 0, 1).kind, "linear");
    assert.equal(scale("log", -1, 10, 0, 1).kind, "linear");
    assert.deepEqual([scale("linear", NaN, Infinity, 0, 1).lo, scale("linear", 3, 1, 0, 1).lo], [0, 1]);
    assert.ok(Number.isNaN(share(scale("log", 1, 10, 0, 1), 0)));
});

test("extents leave out what has no place", () => {
    assert.deepEqual(extent([3, NaN, -1, Infinity, 0]), [-1, 3]);
    assert.deepEqual(extent([3, 0, -1, 0.1], "log"), [0.1, 3]);
    assert.ok(extent([NaN]).every(Number.isNaN));
    assert.deepEqual(padded("linear", 0, 100, 0.1), [-10, 110]);
    const [lo, hi] = padded("log", 1, 100, 0.5);
    near(lo, 0.1);
    near(hi, 1000);
});

test("marks are round and within", () => {
    assert.deepEqual([0.03, 1, 1.2, 3, 7, 0, NaN].map(niceStep), [0.05, 1, 2, 5, 10, 1, 1]);
    assert.deepEqual(ticks(scale("linear", 0, 1, 0, 1), 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
    assert.deepEqual(ticks(scale("linear", -0.3, 0.31, 0, 1), 4), [-0.2, 0, 0.2]);
    assert.deepEqual(ticks(scale("linear", 0.1, 0.7, 0, 1), 3), [0.2, 0.4, 0.6]);
    assert.deepEqual(ticks(scale("log", 1e-5, 1, 0, 1), 10), [1e-5, 1e-4, 1e-3, 0.01, 0.1, 1]);
    assert.deepEqual(ticks(scale("log", 1e-8, 1, 0, 1), 5), [1e-8, 1e-6, 1e-4, 0.01, 1]);
    assert.deepEqual(ticks(scale("log", 2, 6, 0, 1), 4), [2, 3, 4, 5, 6]);
    assert.deepEqual(ticks(scale("log", 0.07, 1.1, 0, 1), 5), [0.1, 0.2, 0.5, 1]);
    assert.deepEqual(ticks(scale("log", 0.0041, 0.064, 0, 1), 6), [0.005, 0.01, 0.02, 0.05]); // one power of ten, and more on either side
    assert.deepEqual(ticks(scale("category", 0, 3, 0, 1), 10), [0, 1, 2, 3]);
});

test("times are marked where a clock shows them, in the reader's zone", () => {
    const t0 = Date.UTC(2026, 10, 25, 23, 10);
    const hours = ticks(scale("time", t0, t0 + 6 * 3600e3, 0, 1), 6);
    assert.equal(hours[0], Date.UTC(2026, 10, 26, 0));
    assert.ok(hours.length >= 3 && hours.length <= 7);
    const days = ticks(scale("time", t0, t0 + 4 * 86400e3, 0, 1), 4, 90); // 1:30 before Greenwich
    assert.deepEqual(days.slice(0, 2), [Date.UTC(2026, 10, 25, 22, 30) + 86400e3, Date.UTC(2026, 10, 25, 22, 30) + 2 * 86400e3]);
});

test("what is seen of an axis moves along it and gets narrower; of a log axis by its logarithm", () => {
    assert.deepEqual([panned([10, 20], 0.25, false), panned([10, 20], -1, false), panned([1, 100], 0.5, true)], [[12.5, 22.5], [0, 10], [10, 1000]]);
    assert.deepEqual([narrowed([0, 8], 2, 0.5, false), narrowed([0, 8], 2, 0, false), narrowed([2, 6], 0.5, 0.5, false), narrowed([1, 10_000], 2, 0.5, true)], [[2, 6], [0, 4], [0, 8], [10, 1000]]);
    assert.deepEqual([isRange([1, 2]), isRange([2, 2]), isRange([NaN, 1]), isRange(narrowed([5, 5.000001], 4, 0.5, false))], [true, false, false, false]);
});

test("many values go to where each goes alone; what has no place has none", () => {
    const zone = Date.UTC(2026, 0, 1);
    for (const s of [scale("linear", -3, 7, 500, 20), scale("log", 1e-5, 10, 3, 900), scale("time", zone, zone + 5000, 0, 100), scale("log", 0, 1, 0, 1)]) {
        const of = pixels(s);
        for (let i = -2; i <= 12; i++) {
            const v = s.lo + (i / 10) * (s.hi - s.lo);
            if (s.kind === "log" && v <= 0) assert.ok(Number.isNaN(of(v)));
            else near(of(v), toPixel(s, v));
        }
        assert.ok(Number.isNaN(of(NaN)));
    }
    assert.deepEqual([0, -1].map(pixels(scale("log", 1, 10, 0, 1))), [NaN, NaN]);
});

test("the texts beside an axis differ, and have room at its left", () => {
    for (const [lo, hi] of [[0, 1], [0.931_21, 0.931_22], [-1000.002, -1000.001], [1e6, 1e6 + 10], [-1.2e-10, 1.3e-10], [5e-324, 1e-300], [1, 1 + 2e-6]] as const) {
        const texts = numbers(upwards(scale("linear", lo, hi, 0, 300), 300));
        assert.equal(new Set(texts).size, texts.length, texts.join());
        assert.ok(texts.length > 1 && texts.every((t) => roomFor(texts) >= 6 + 6.7 * t.length), `${roomFor(texts)} for ${texts}`); // a digit of 12 px is 6.7 wide
    }
});
