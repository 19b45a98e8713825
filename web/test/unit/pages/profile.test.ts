import assert from "node:assert/strict";
import { test } from "node:test";
import { firstName, joined, labelOf } from "../../../src/pages/trial/profile";

test("what a curve is of, and what is seen first", () => {
    assert.deepEqual([labelOf({ agentId: "a", gpuUuid: "GPU-1" }), labelOf({ agentId: "a", gpuUuid: "" }), labelOf({ agentId: "", gpuUuid: "" })], ["a GPU-1", "a", "trial"]);
    assert.deepEqual([firstName(["disk", "gpu_util"]), firstName(["disk"]), firstName([])], ["gpu_util", "disk", ""]);
});

test("batches of a series in order of time; what has no time is left out", () => {
    const labels = { trialId: 1, name: "n", agentId: "", gpuUuid: "", metricType: "PROFILER_METRIC_TYPE_SYSTEM" as const };
    const got = joined("x", [{ values: [3, 4], batches: [20, 30], timestamps: ["2026-01-01T00:00:02Z", null], labels }, { values: [1], batches: [10], timestamps: ["2026-01-01T00:00:01Z"], labels }]);
    assert.deepEqual([got.values, got.batches], [[1, 3], [10, 20]]);
});
