import assert from "node:assert/strict";
import { test } from "node:test";
import { layer } from "../../../src/pages/experiment/charts";
import { changed } from "../../../src/pages/experiment/experiment";
import { askMetrics, askTrials, axesOf, bestOf, CURVES_MOST, drawn, lost, lostText, metricId, newestOf, points, pointsOf, rowsOf, starOf, stillThere, trialsEvery, wanted, type Experiment, type Trial } from "../../../src/pages/experiment/data";
import { numberTyped } from "../../../src/pages/experiment/mark";
import { expView } from "../../../src/state/address";
import { epochAt, epochMetric } from "../../../src/pages/experiment/epochs";
import { partsOf, valuesOf, wholeCsv } from "../../../src/pages/experiment/whole";

const trial = (id: number, value: number | null, state = "STATE_COMPLETED", hparams: object = {}): Trial =>
    ({ id, state, searcherMetricValue: value, hparams, startTime: "2026-01-01T00:00:00Z" }) as unknown as Trial;

test("the best trial, also where the metric is 0 or is not there", () => {
    const all = [trial(1, 0.5), trial(2, 0), trial(3, null), trial(4, -1)];
    assert.equal(bestOf(all, true)?.id, 4);
    assert.equal(bestOf(all.slice(0, 3), true)?.id, 2);
    assert.equal(bestOf(all, false)?.id, 1);
    assert.equal(bestOf([trial(3, null)], true), null);
});

test("of too many trials the chosen, the running and the best are drawn", () => {
    const all = Array.from({ length: 2000 }, (_, i) => trial(i + 1, i, i === 1500 ? "STATE_RUNNING" : "STATE_COMPLETED"));
    const ids = drawn(all, [1999], true).map((t) => t.id);
    assert.equal(ids.length, CURVES_MOST);
    assert.deepEqual([ids[0], ids.at(-2), ids.at(-1)], [1, 1501, 1999]);
    assert.equal(drawn(all.slice(0, 3), [], true).length, 3);
});

test("the best checkpoint stands at its metric's nearest point, on any axis", () => {
    const data = [10, 20, 30].map((batches) => ({ batches, time: `2026-01-01T00:00:${batches}Z`, values: { loss: 9 - batches / 10, other: 1 } }));
    const s = { trial: trial(1, 0, "", { global_batch_size: 2 }), metrics: [{ group: "validation", type: "METRIC_TYPE_VALIDATION" as const, data }] };
    const at = (x: "batches" | "records" | "time", batches: number | null, metric = "validation.loss") => starOf(s, metric, batches, x, null, null);
    assert.deepEqual([at("batches", 20), at("records", 20), at("time", 20), at("batches", 29)], [{ x: 20, y: 7 }, { x: 40, y: 7 }, { x: 20, y: 7 }, { x: 30, y: 6 }]);
    assert.deepEqual([at("batches", null), at("batches", 20, "training.loss")], [null, null]);
    const zoomed = (batches: number, zoom: [number, number]) => starOf({ ...s, metrics: [{ ...s.metrics[0]!, data: data.filter((p) => p.batches >= zoom[0] && p.batches <= zoom[1]) }] }, "validation.loss", batches, "batches", null, null, zoom);
    assert.deepEqual([zoomed(30, [5, 25]), zoomed(10, [15, 35]), zoomed(20, [15, 35])], [null, null, { x: 20, y: 7 }], "it does not stand at the edge of a part that it lies outside of");
});

test("the newest value of each metric, by group and name", () => {
    const of = newestOf({ summaryMetrics: { avg_metrics: { loss: { last: 1, min: 0, max: 2 } }, validation_metrics: { loss: { last: "NaN" } }, "my.group": { x: { last: 0 } } } });
    assert.deepEqual([...of].map(([name, n]) => [name, n.last]), [["training.loss", 1], ["validation.loss", "NaN"], ["my.group.x", 0]]);
    assert.equal(newestOf({ summaryMetrics: null }).size, 0);
    assert.deepEqual([...newestOf({ summaryMetrics: { constructor: { toString: { last: 1 } } } as never })].map(([name, n]) => [name, n.last]), [["constructor.toString", 1]]);
});

test("a group's curve is of all of its trials, and of very many each has fewer points", () => {
    const all = Array.from({ length: 2000 }, (_, i) => trial(i + 1, i));
    assert.deepEqual([wanted(all, [], false, true).length, wanted(all, [], true, true).length], [CURVES_MOST, 2000]);
    assert.deepEqual([1, 500, 2000, 10_000].map(pointsOf), [1500, 1500, 375, 75]);
});

test("points by batches, by the trial's time and by the clock; names with dots; what is no number is left out", () => {
    const s = { trial: trial(1, 0), metrics: [{ group: "validation", type: "METRIC_TYPE_VALIDATION" as const, data: [
        { batches: 10, time: "2026-01-01T00:00:20Z", values: { "top.5": 0, loss: 9 } },
        { batches: 20, time: "2026-01-01T00:00:10Z", values: { "top.5": 0.5 } },
        { batches: 30, time: "2026-01-01T00:00:30Z", values: { "top.5": "NaN" } }] }] };
    assert.deepEqual(points(s, "validation.top.5", "batches"), { x: [10, 20], y: [0, 0.5] });
    assert.deepEqual(points(s, "validation.top.5", "time"), { x: [10, 20], y: [0.5, 0] });
    assert.deepEqual(points(s, "validation.top.5", "clock").x, [Date.UTC(2026, 0, 1, 0, 0, 10), Date.UTC(2026, 0, 1, 0, 0, 20)]);
    assert.deepEqual(points(s, "training.top.5", "batches"), { x: [], y: [] });
    const big = { ...s, trial: trial(1, 0, "", { global_batch_size: 32 }) };
    assert.deepEqual([points(big, "validation.top.5", "records").x, points(big, "validation.top.5", "epochs", { records_per_epoch: 640 }).x], [[320, 640], [0.5, 1]]);
    const told = { ...s, trial: { ...trial(1, 0, "", { global_batch_size: 32 }), epochLength: 5 } }; // by its own loop: before the configuration
    assert.deepEqual(points(told, "validation.top.5", "epochs", { records_per_epoch: 640 }).x, [2, 4]);
    assert.deepEqual([points(s, "validation.top.5", "records").x, points(big, "validation.top.5", "epochs", { records_per_epoch: 0 }).x], [[], []]);
});

test("epochs as the trial counts them: exact where they were reported, in proportion elsewhere", () => {
    const names = [{ group: "training", name: "epochs" }, { group: "validation", name: "loss" }, { group: "mine.x", name: "epoch" }];
    assert.deepEqual(["training.loss", "validation.loss", "mine.x.loss"].map((m) => epochMetric(names, m)), ["training.epochs", "training.epochs", "mine.x.epoch"]);
    assert.equal(epochMetric([{ group: "training", name: "epoch_loss" }], "training.loss"), null);
    assert.deepEqual([0, 10, 15, 20, 30].map(epochAt({ x: [20, 10, 10], y: [3, 9, 1] })!), [-1, 1, 2, 3, 5]);
    assert.deepEqual([5, 20].map(epochAt({ x: [10], y: [2] })!), [1, 4]);
    assert.deepEqual([0, 3].map(epochAt({ x: [0], y: [2] })!), [2, 2]);
    assert.equal(epochAt({ x: [1], y: [NaN] }), null);
    const t = trial(1, 0, "", { global_batch_size: 32 }), time = "2026-01-01T00:00:00Z";
    const s = { trial: t, metrics: [{ group: "training", type: "METRIC_TYPE_TRAINING" as const, data: [{ batches: 10, time, values: { epochs: 1 } }, { batches: 30, time, values: { epochs: 2 } }] },
        { group: "validation", type: "METRIC_TYPE_VALIDATION" as const, data: [{ batches: 20, time, values: { loss: 7 } }] }] };
    assert.deepEqual(points(s, "validation.loss", "epochs", { records_per_epoch: 32 }, "training.epochs"), { x: [1.5], y: [7] });
    assert.deepEqual(points(s, "validation.loss", "epochs", { records_per_epoch: 32 }, "validation.epoch"), { x: [20], y: [7] });
    assert.deepEqual(points(s, "validation.loss", "batches", null, "training.epochs"), { x: [20], y: [7] });
    const data = [[10, 1, 4], [20, 2, 3], [30, 0, 2], [40, 1.5, 1]].map(([batches, epoch, loss]) => ({ batches: batches!, time, values: { epoch, loss } }));
    const again = { trial: t, metrics: [{ group: "training", type: "METRIC_TYPE_TRAINING" as const, data }] };
    assert.deepEqual(points(again as never, "training.loss", "epochs", null, "training.epoch"), { x: [0, 1, 1.5, 2], y: [2, 4, 1, 3] }); // from 0 again after a resume
});

test("trials whose newest value has no place in a chart are counted", () => {
    const t = (last: unknown) => ({ summaryMetrics: { validation_metrics: { "top.5": { count: 3, last } } } }), all = [t("NaN"), t(0.5), t("-Infinity"), t("word"), { summaryMetrics: null }];
    const odd = [{ summaryMetrics: JSON.parse('{"constructor":{"loss":{"last":"NaN"}},"__proto__":{"loss":{"last":"NaN"}}}') as never }];
    assert.deepEqual([lost(odd, "constructor.loss"), lost(odd, "__proto__.loss"), lost([{ summaryMetrics: {} }], "constructor.name")], [1, 1, 0]);
    assert.deepEqual([lost(all, "validation.top.5"), lost(all, "training.top.5"), lost(all, "validation.loss")], [2, 0, 0]);
    assert.deepEqual([lostText(all, "validation.top.5"), lostText(all.slice(0, 2), "validation.top.5"), lostText(all.slice(1, 2), "validation.top.5")],
        ["; of 2 trials the newest value is NaN or infinite: not drawn", "; of 1 trial the newest value is NaN or infinite: not drawn", ""]);
});

test("a file has every value that was reported, the infinite ones too", () => {
    const r = { group: "validation", metrics: { validation_metrics: { "top.5": "NaN", loss: 0, name: "word", toString: 1 } } };
    assert.deepEqual(valuesOf(r, ["validation.top.5", "validation.loss", "validation.name", "validation.gone", "validation.constructor"]), [["validation.top.5", NaN], ["validation.loss", 0]]);
    assert.deepEqual(valuesOf({ group: "training", metrics: { avg_metrics: { loss: "-Infinity" } } }, ["training.loss"]), [["training.loss", -Infinity]]);
    assert.deepEqual(valuesOf({ group: "training", metrics: null }, ["training.loss"]), []);
});

test("a file is made of a part a request: as many trials of one experiment as one takes, a group of metrics", async () => {
    const trials = Array.from({ length: 120 }, (_, i) => ({ id: i, experimentId: i % 2 }) as unknown as Trial), told: number[] = [];
    const whole = { trials, metrics: ["validation.loss", "training.loss", "validation.acc"], x: "batches" as const, configOf: () => null };
    const parts = partsOf(whole);
    assert.deepEqual(parts.map((p) => [p.trials.length, p.group, p.metrics.length]), [50, 10, 50, 10].flatMap((n) => [[n, "validation", 2], [n, "training", 1]]));
    const names = [{ group: "training", name: "epoch" }, { group: "validation", name: "epoch" }]; // which need not be the same
    assert.deepEqual(partsOf({ ...whole, trials: trials.slice(0, 1), x: "epochs", epochsOf: (m) => epochMetric(names, m) }).map((p) => p.epochs), ["validation.epoch", "training.epoch"]);
    assert.equal(parts[0]!.epochs, null);
    const file = await wholeCsv(whole, async (p, say) => {
        say(1);
        return [[p.trials[0]!.id, p.metrics[0]!, 1, NaN]];
    }, (n) => told.push(n));
    const lines = (await file.text()).split("\r\n");
    assert.deepEqual([lines.slice(0, 3), lines.length, told], [["trial,metric,batches,value", "0,validation.loss,1,NaN", "0,training.loss,1,NaN"], 10, [1, 2, 3, 4, 5, 6, 7, 8]]);
    await assert.rejects(wholeCsv(whole, () => Promise.reject(new Error("stopped")), () => undefined), /stopped/);
});

test("names of metrics are known while the experiment runs, whose stream of them does not end", async () => {
    const real = globalThis.fetch;
    let isLeft = false;
    const body = new ReadableStream({
        start: (c) => c.enqueue(new TextEncoder().encode('{"result":{"metricNames":[{"group":"validation","name":"loss"},{"group":"mine","name":"<b>"}]}}\n')), cancel: () => { isLeft = true; } });
    globalThis.fetch = (async () => new Response(body)) as unknown as typeof fetch;
    try {
        assert.deepEqual((await askMetrics([1], new AbortController().signal)).map(metricId), ["mine.<b>", "validation.loss"]);
        assert.ok(isLeft, "the stream goes on");
    } finally {
        globalThis.fetch = real;
    }
});

test("trials are told of as they come, each time twice as many", async () => {
    const real = globalThis.fetch, told: number[] = [];
    globalThis.fetch = (async (url: string) => {
        const offset = Number(/offset=(\d+)/.exec(String(url))![1]), trials = Array.from({ length: 1000 }, (_, i) => ({ id: offset + i }));
        return new Response(JSON.stringify({ trials, pagination: { total: 9000 } }), { headers: { "content-type": "application/json" } });
    }) as unknown as typeof fetch;
    try {
        const all = await askTrials("1", new AbortController().signal, (some) => told.push(some.length));
        assert.deepEqual([all.length, all.at(-1)!.id, told], [9000, 8999, [1000, 2000, 4000, 8000]]);
    } finally {
        globalThis.fetch = real;
    }
});

test("marking takes what was typed, once it is a number", () => {
    assert.deepEqual(["1e-4", "-3", " .5 "].map(numberTyped), [1e-4, -3, 0.5]);
    for (const none of ["", " ", "1e-", "-", "x", "Infinity"]) assert.throws(() => numberTyped(none), /is no number: write one/, none);
});

test("a larger search is asked for less often", () => {
    assert.deepEqual([0, 1000, 1001, 5000, 10_000, 100_000].map((n) => trialsEvery(n, 1000)), [1000, 1000, 2000, 5000, 10_000, 60_000]);
});

test("rows and axes of a search", () => {
    const e = { config: { hyperparameters: { lr: { type: "log" }, net: { width: { type: "categorical", vals: [8, 16] } } } } } as unknown as Experiment;
    const rows = rowsOf([trial(1, 0.1, "", { lr: 0.1, net: { width: 16 } }), trial(2, 0, "", { lr: 1e-3, net: { width: 8 } })], "loss");
    assert.deepEqual({ ...rows[1]!.values }, { lr: 1e-3, "net.width": 8, loss: 0 });
    assert.deepEqual(axesOf(e, rows, ["lr", "net.width"], "loss").map((a) => [a.name, a.kind, a.lo, a.hi]),
        [["lr", "log", 1e-3, 0.1], ["net.width", "category", 0, 1], ["loss", "linear", 0, 0.1]]);
});

test("a curve is in front when it is pointed at or chosen, behind when another is or when it lies outside the marks", () => {
    const inside = new Set([1, 2]), of = (query: string, hover: number | null = null) =>
        [[1], [2], [3], [1, 3]].map((ids) => layer(ids, { view: expView(query), hover: { value: hover } as Parameters<typeof layer>[1]["hover"] }, inside)).join(" ");
    assert.equal(of(""), "plain plain plain plain");
    assert.equal(of("", 3), "back back front front");
    assert.equal(of("t=2"), "back front back back");
    assert.equal(of("t=2", 3), "back front front front");
    assert.equal(of("brush=lr:0..1"), "plain plain back plain");
    assert.equal(of("brush=lr:0..1", 3), "back back front front");
    assert.equal(of("g=lr&brush=lr:0..1&t=2"), "plain plain plain plain"); // of groups: what lies outside is in none
});

test("the best checkpoint is no longer one that was removed since", () => {
    const best = { uuid: "b", totalBatches: 1260 };
    assert.equal(stillThere(best, []), best);
    assert.equal(stillThere(best, [{ uuid: "a", state: "STATE_DELETED" }]), best); // a list that is older, or a part
    assert.equal(stillThere(best, [{ uuid: "b", state: "STATE_COMPLETED" }]), best);
    for (const state of ["STATE_DELETED", "STATE_PARTIALLY_DELETED", "STATE_ERROR"] as const) assert.equal(stillThere(best, [{ uuid: "b", state }]), null, state);
    assert.equal(stillThere(null, [{ uuid: "b", state: "STATE_DELETED" }]), null);
});

test("a change beside a log keeps its filters, and the line that is pointed to while it is the same log", () => {
    const log = expView("tab=logs&log=5"), of = (change: object, view = log) => changed(view, change, "tab=logs&log=5&search=x", "#l=12");
    assert.equal(of({ logY: true }), "?y=log&tab=logs&log=5&search=x#l=12");
    assert.equal(of({ log: 5 }, expView("tab=logs")), "?tab=logs&log=5&search=x#l=12"); // nobody had chosen
    assert.deepEqual([of({ log: 6 }), of({ tab: "notes" })], ["?tab=logs&log=6&search=x", "?tab=notes&log=5"]);
    assert.equal(of({ tab: "logs" }, expView("tab=notes&log=5")), "?tab=logs&log=5&search=x");
});
