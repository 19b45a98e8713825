import assert from "node:assert/strict";
import { test } from "node:test";
import { svgOf } from "../../../src/charts/picture";
import { rungsPicture, spotsOf, stepFrom, type RungsShape } from "../../../src/charts/rungs";
import { bracketWords, columnsOf } from "../../../src/pages/experiment/rungs";

Object.assign(globalThis, { document: { documentElement: {} }, getComputedStyle: () => ({ getPropertyValue: () => "" }) });

const rung = (n: number, trials: { trialId: number; metric: number | null; state: string }[]) =>
    ({ rung: n, length: 4 ** n, training: 0, toCome: 0, validated: trials.length, wentOn: trials.filter((t) => t.state === "WENT_ON").length, trials });
const BRACKET = { bracket: 1, rungs: [
    rung(1, [{ trialId: 3, metric: 0.1, state: "WENT_ON" }, { trialId: 1, metric: 0.2, state: "WENT_ON" }, { trialId: 2, metric: 0.8, state: "STOPPED" }, { trialId: 4, metric: null, state: "FAILED" }]),
    rung(2, [{ trialId: 1, metric: 0.05, state: "TOP" }, { trialId: 3, metric: 0.09, state: "STOPPED" }])] } as unknown as Parameters<typeof columnsOf>[0] & { bracket: number };
const shape = (more: Partial<RungsShape> = {}): RungsShape => ({ columns: columnsOf(BRACKET), unit: "batches", logY: false, inside: new Set([1, 2, 3, 4]), chosen: [], ...more });

test("a dot for each that has a metric, in its rung's column, as high as the metric is", () => {
    const spots = spotsOf(shape(), 800), at = (id: number, column: number) => spots.find((s) => s.id === id && s.column === column)!;
    assert.deepEqual(spots.map((s) => [s.id, s.column]), [[3, 0], [1, 0], [2, 0], [1, 1], [3, 1]]);
    assert.ok(at(2, 0).y < at(1, 0).y && at(1, 0).y < at(3, 0).y && at(1, 1).x > at(1, 0).x && at(3, 0).x === at(2, 0).x);
    assert.ok(spotsOf(shape({ logY: true }), 800).every((s) => Number.isFinite(s.y)) && spotsOf(shape({ columns: [] }), 800).length === 0);
});

test("arrow keys go through a rung, and with a trial from rung to rung", () => {
    const spots = spotsOf(shape(), 800), find = (id: number, column: number) => spots.find((s) => s.id === id && s.column === column)!;
    const step = (id: number, column: number, key: string) => { const s = stepFrom(spots, find(id, column), key)!; return [s.id, s.column]; };
    assert.deepEqual([step(1, 0, "ArrowUp"), step(2, 0, "ArrowUp"), step(1, 0, "ArrowDown"), step(3, 0, "ArrowRight"), step(2, 0, "ArrowRight"), step(1, 1, "ArrowRight"), step(3, 1, "ArrowLeft")],
        [[2, 0], [2, 0], [3, 0], [3, 1], [3, 1], [1, 1], [3, 0]]);
    assert.deepEqual([stepFrom(spots, null, "ArrowUp")?.id, stepFrom([], null, "ArrowUp")], [3, null]);
});

test("as a file: what became of each has a shape of its own, and a line where it went on", () => {
    const drawn = (more: Partial<RungsShape> = {}) => svgOf(rungsPicture(shape(more), "a <title>")), svg = drawn(), count = (what: RegExp, of = svg) => of.match(what)?.length ?? 0;
    const [dots, squares, triangles] = [/<path d="M[^"]*a5 5[^"]*" fill="#(?!888)/g, /<path d="M[^"]*h10v10h-10z" fill="#(?!888)/g, /<path d="M(?:[^"hva]*L){3}[^"hva]*" fill="#(?!888)/g];
    assert.deepEqual([dots, squares, triangles].map((w) => count(w)), [2, 2, 1]);
    assert.equal(count(/<path d="M[^"L]*L[^"LM]*" fill="none"/g), 2); // the ways of 1 and 3
    assert.deepEqual([count(/opacity="0.2"/g), count(/opacity="0.2"/g, drawn({ inside: new Set([1]) }))], [0, 4]); // two places and the way of 3, and 2
    assert.equal(count(/a10 10/g, drawn({ chosen: [2] })), 2 * 1);
    assert.ok(!/NaN|undefined|<title>a <title>/.test(svg), svg);
});

test("the picture in words", () => {
    assert.equal(bracketWords(BRACKET, "loss"), "Bracket 1 by loss: rung 1: 4 validated, 2 went on; rung 2: 2 validated, 0 went on");
});
