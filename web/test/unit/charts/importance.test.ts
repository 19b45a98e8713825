import assert from "node:assert/strict";
import { test } from "node:test";
import { axis, flat, type Axis, type Value } from "../../../src/charts/axes";
import { importancePicture } from "../../../src/pages/experiment/importance_picture";
import { svgOf } from "../../../src/charts/picture";
import { ranks, weighable, weighed } from "../../../src/charts/work/importance";
import { distance } from "../../../src/charts/parallel";
import { Newest, work } from "../../../src/charts/work/working";
import { csv } from "../../../src/ui/words/save";
import { waitMs } from "../../../src/state/live";

const importance = (a: Axis, rows: Record<string, Value>[], metric: string) => weighed(weighable([a], rows, metric))[0]!;

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

test("as a file: a bar each as long as it weighs, its name, and on how many trials it rests", () => {
    Object.assign(globalThis, { document: { documentElement: {} }, getComputedStyle: () => ({ getPropertyValue: () => "" }) });
    const of = (name: string, weight: number, isSigned = true) => ({ name, weight, isSigned, n: 40 });
    const svg = svgOf(importancePicture([of("lr", -0.5), of("<b>".repeat(100), 1, false), of("none", NaN)], "loss", "a title"));
    const bars = [...svg.matchAll(/<path d="M240 \d+h([\d.]+)v16h[^"]*" fill="#888"/g)].map((m) => Number(m[1]));
    assert.deepEqual(bars, [215, 430]);
    assert.match(svg, />0\.5 · 40 trials · more of it: a smaller loss<.*>&lt;b&gt;&lt;b&gt;[^<]{1,80}…<.*>1 · 40 trials<.*>cannot be told · 40 trials</s);
    assert.ok(!/NaN|<b>/.test(svg), svg);
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

test("a page asks one thing at a time: of what comes meanwhile only the newest is next", async () => {
    const asked: number[] = [], told: string[] = [];
    let answer = (_: string): void => undefined;
    const newest = new Newest((job: number) => new Promise<string>((done) => { asked.push(job); answer = done; }), (job, a) => told.push(`${job} ${a}`));
    const turn = () => new Promise((done) => setImmediate(done));
    const all = newest.put(1);
    for (const job of [2, 3, 4]) void newest.put(job);
    answer("a");
    await turn();
    assert.deepEqual([asked, told], [[1, 4], ["1 a"]]);
    answer("b");
    await all;
    assert.deepEqual([asked, told], [[1, 4], ["1 a", "4 b"]]);
    const last = newest.put(5);
    newest.end();
    answer("c");
    await last;
    assert.deepEqual([asked, told], [[1, 4, 5], ["1 a", "4 b"]], "what comes when nobody looks any more is told to nobody");
});

test("where there is no worker the page does the work itself", async () => {
    const rows = [1, 2, 3].map((v) => flat({ lr: v, loss: v }));
    assert.deepEqual(await work("weighed", weighable([axis("lr", [1, 2, 3])], rows, "loss")), [{ name: "lr", weight: 1, isSigned: true, n: 3 }]);
});
