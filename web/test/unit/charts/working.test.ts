import assert from "node:assert/strict";
import { test } from "node:test";
import { WORK } from "../../../src/charts/work/table";

class Lost {
    onerror: (e: { preventDefault(): void }) => void = () => undefined;
    constructor() { lose = () => this.onerror({ preventDefault: () => undefined }); }
    postMessage(): void {}
    terminate(): void {}
}
let lose = (): void => undefined;
Object.assign(globalThis, { WORKER: "worker.js", Worker: Lost }); // before it is loaded, which looks for them
const { Newest, work } = await import("../../../src/charts/work/working");

test("work that fails does not hold up what comes after it", async () => {
    const told: [number, string][] = [];
    const newest = new Newest<number, string>(async (n) => { if (n === 1) throw new Error("memory is out"); return "done"; }, (n, a) => told.push([n, a]), (n, why) => told.push([n, why]));
    await newest.put(1);
    await newest.put(2);
    assert.deepEqual(told, [[1, "memory is out"], [2, "done"]]);
});

test("where the worker is lost, each job is answered or fails by itself", async () => {
    const weighed = WORK.weighed;
    WORK.weighed = () => { throw new Error("memory is out"); };
    try {
        const none = { metric: new Float64Array(), axes: [] };
        const all = Promise.allSettled([work("weighed", none), work("collapsedAll", { x: new Float64Array(), y: new Float64Array(), ends: new Uint32Array(), curves: new Uint32Array() })]);
        lose();
        assert.deepEqual((await all).map((r) => r.status), ["rejected", "fulfilled"]);
    } finally {
        WORK.weighed = weighed;
    }
});
