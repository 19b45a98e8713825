import assert from "node:assert/strict";
import { test } from "node:test";
import type { Series } from "../../../src/pages/experiment/data";
import { endOf, joined, KeptSeries, partsBy } from "../../../src/pages/experiment/kept_series";

const at = (batches: number, run = 0) => ({ batches, time: new Date(1e12 + 1000 * batches + run).toISOString(), values: { loss: batches } });
const series = (id: number, state: string, ...groups: [string, ReturnType<typeof at>[]][]): Series =>
    ({ trial: { id, state }, metrics: groups.map(([group, data]) => ({ group, type: "METRIC_TYPE_UNSPECIFIED", data })) }) as unknown as Series;
const batchesOf = (s: Series | null | undefined, group = "training") => s?.metrics.find((g) => g.group === group)?.data.map((p) => p.batches);

/* A master whose trials have these points; what it was asked. */
function master() {
    const trials = new Map<number, { state: string; data: ReturnType<typeof at>[] }>(), asked: [string, number][] = [];
    const ask = async (ids: number[], _: unknown, from: number): Promise<Series[]> => {
        asked.push([ids.join(), from]);
        return ids.map((id) => series(id, trials.get(id)!.state, ["training", trials.get(id)!.data.filter((p) => p.batches >= from)]));
    };
    return { trials, asked, ask };
}

test("of trials that go on what came since is asked for, of those that have ended nothing after one more look", async () => {
    const m = master(), kept = new KeptSeries(m.ask, () => 0), signal = new AbortController().signal;
    const ask = async (isLast = false) => { m.asked.length = 0; return kept.ask([1, 2, 3], ["training.loss"], null, isLast, signal); };
    m.trials.set(1, { state: "STATE_RUNNING", data: [at(100), at(110)] }).set(2, { state: "STATE_COMPLETED", data: [at(5)] }).set(3, { state: "STATE_RUNNING", data: [] });
    await ask();
    assert.deepEqual(m.asked, [["1,2,3", 0]]);
    m.trials.get(1)!.data.push(at(120));
    m.trials.get(3)!.data.push(at(90));
    const second = await ask();
    assert.deepEqual(m.asked, [["3", 0], ["2", 5], ["1", 110]]);
    assert.deepEqual(second.map((s) => batchesOf(s)), [[100, 110, 120], [5], [90]]);
    await ask();
    assert.deepEqual(m.asked, [["3,1", 90]], "near ones share a request");
    assert.deepEqual((await ask()).map((s) => s.trial.id), [1, 2, 3]);
    await ask(true);
    assert.deepEqual(m.asked, [["1,2,3", 0]], "the last time all of it");
});

test("a trial that went back to a checkpoint is asked for whole, also when it has come further since", async () => {
    const m = master(), kept = new KeptSeries(m.ask, () => 0), ask = () => kept.ask([1], ["training.loss"], null, false, new AbortController().signal);
    m.trials.set(1, { state: "STATE_RUNNING", data: [at(10), at(20), at(30)] });
    await ask();
    m.trials.set(1, { state: "STATE_RUNNING", data: [at(10), at(20, 7), at(30, 7), at(40, 7)] });
    assert.deepEqual(batchesOf((await ask())[0]), [10, 20, 30], "as it was until all is known");
    assert.deepEqual((await ask())[0]!.metrics[0]!.data, [at(10), at(20, 7), at(30, 7), at(40, 7)]);
    assert.deepEqual(m.asked.map(([, from]) => from), [0, 30, 0]);
});

test("another metric or range is asked for whole, and all once a minute", async () => {
    const m = master();
    let now = 0;
    const kept = new KeptSeries(m.ask, () => now), ask = (metric: string, zoom: [number, number] | null = null) => kept.ask([1], [metric], zoom, false, new AbortController().signal);
    m.trials.set(1, { state: "STATE_RUNNING", data: [at(10)] });
    for (const [metric, zoom] of [["training.a"], ["training.a"], ["training.b"], ["training.b", [0, 5]], ["training.b", [0, 5]]] as [string, [number, number]?][]) await ask(metric, zoom ?? null);
    now = 60_000;
    await ask("training.b", [0, 5]);
    assert.deepEqual(m.asked.map(([, from]) => from), [0, 10, 0, 0, 10, 0]);
});

test("groups that have come to different batches are kept to where the last of them is", () => {
    const old = series(1, "", ["training", [at(10), at(20), at(30)]], ["validation", [at(20)]]);
    const now = joined(old, series(1, "", ["training", [at(20), at(30), at(40)]], ["validation", [at(20), at(40)]]), 20);
    assert.deepEqual([batchesOf(now), batchesOf(now, "validation")], [[10, 20, 30, 40], [20, 40]]);
    assert.equal(joined(old, series(1, "", ["training", [at(40)]], ["validation", []]), 20), null);
});

test("a request has at most fifty trials, and none that are far apart", () => {
    assert.deepEqual(partsBy([3, 1, 2, 4], (id) => [0, 0, 50, 100, 101][id]!), [{ ids: [1], from: 0 }, { ids: [2, 3], from: 50 }, { ids: [4], from: 101 }]);
    assert.deepEqual(partsBy(Array.from({ length: 120 }, (_, i) => i), () => 0).map((p) => p.ids.length), [50, 50, 20]);
});

test("a trial that went back to before what a shared request asks from is not put together of two attempts", () => {
    const old = series(1, "", ["training", [70, 75, 80, 90, 100, 110].map((b) => at(b))]), since = (...points: ReturnType<typeof at>[]) => series(1, "", ["training", points]);
    assert.equal(joined(old, since(at(90, 7), at(100, 7)), 90), null, "the same batches at later times");
    assert.equal(joined(old, since(at(91, 7), at(101, 7)), 90), null, "others");
    assert.equal(joined(old, since(), 90), null, "none yet");
    assert.deepEqual(batchesOf(joined(old, since(at(90), at(95, 7)), 90)), [70, 75, 80, 90, 95], "it went back to what is asked for anyway");
    assert.deepEqual(batchesOf(joined(old, since(at(95), at(110), at(120)), 90)), [70, 75, 80, 95, 110, 120], "of a long stretch the lowest and the highest alone");
    const two = series(1, "", ["training", [at(90)]], ["validation", [at(80), at(95)]]);
    assert.equal(joined(two, series(1, "", ["training", [at(90)]], ["validation", [at(95, 7)]]), 90), null, "each group has to be the same");
});

test("a group that reported at batch 0 alone does not have all asked for", () => {
    const of = (...groups: [string, ReturnType<typeof at>[]][]) => endOf({ series: series(1, "", ...groups), isWhole: false }, { points: 10, metrics: ["a"], batches: null });
    assert.deepEqual([of(["training", [at(10), at(20)]], ["validation", [at(0)]]), of(["validation", [at(0)]]), of(["training", []])], [20, 0, 0]);
    const now = joined(series(1, "", ["training", [at(20)]], ["validation", [at(0)]]), series(1, "", ["training", [at(20), at(30)]], ["validation", []]), 20);
    assert.deepEqual([batchesOf(now), batchesOf(now, "validation")], [[20, 30], [0]]);
});

test("fewer curves have more points each, and are asked for whole; more curves are not", async () => {
    const m = master(), kept = new KeptSeries(m.ask, () => 0), all = Array.from({ length: 2000 }, (_, i) => i + 1), wholes = () => m.asked.splice(0).filter(([, from]) => !from).length;
    for (const id of all) m.trials.set(id, { state: "STATE_RUNNING", data: [at(10)] });
    const ask = async (n: number) => { await kept.ask(all.slice(0, n), ["training.loss"], null, false, new AbortController().signal); return wholes(); };
    assert.deepEqual([await ask(400), await ask(400), await ask(2000), await ask(2000), await ask(400), await ask(400)], [8, 0, 32, 0, 8, 0]);
});
