import assert from "node:assert/strict";
import { test } from "node:test";
import { csvOf, orderOf, rowsOf } from "../../../src/pages/trial/reports_data";

const report = (kind: "training" | "validation", totalBatches: number, group: string, avgMetrics: object, endTime = "2026-01-01T00:00:00Z") =>
    ({ [kind]: { totalBatches, group, numInputs: 0, endTime, metrics: { avgMetrics } } });
const saved = (totalBatches: number) => ({ checkpoint: { uuid: "u", state: "STATE_COMPLETED" as const, totalBatches, resources: {}, metadata: {}, endTime: null } });

test("reports of a batch are a row, by the group that each was reported as", () => {
    const all = [report("validation", 20, "validation", { loss: 0 }, "2026-01-02T00:00:00Z"), report("training", 20, "training", { loss: 1, "a.b": "NaN" }), saved(20),
        report("training", 10, "mine", { __proto__x: 1, constructor: [1] })];
    const rows = rowsOf(all as never, false);
    assert.deepEqual(rows.map((r) => [r.batches, [...r.values], r.time, r.checkpoint?.uuid]), [
        [20, [["validation.loss", 0], ["training.loss", 1], ["training.a.b", "NaN"]], "2026-01-02T00:00:00Z", "u"],
        [10, [["mine.__proto__x", 1], ["mine.constructor", [1]]], "2026-01-01T00:00:00Z", undefined]]);
    assert.deepEqual(rowsOf(all as never, true).map((r) => r.batches), [20]);
    assert.deepEqual(rowsOf(all.slice(3) as never, true).map((r) => r.batches), [10]);
    assert.equal(csvOf(rows, ["validation.loss", "training.a.b", "mine.constructor"]),
        "batches,time,validation.loss,training.a.b,mine.constructor\r\n20,2026-01-02T00:00:00Z,0,NaN,\r\n10,2026-01-01T00:00:00Z,,,[1]\r\n");
});

test("a table of reports is sorted by batches, or by a metric that is there", () => {
    const ids = ["validation.top.5", "training.loss"];
    assert.deepEqual([undefined, "-batches", "batches", "gone.x", "-validation.top.5", "training.loss"].map((k) => Object.values(orderOf(k, ids))), [
        ["batches", true, null, null], ["batches", true, null, null], ["batches", false, null, null], ["batches", true, null, null],
        ["validation.top.5", true, "validation", "top.5"], ["training.loss", false, "training", "loss"]]);
});
