import assert from "node:assert/strict";
import { test } from "node:test";
import { canMove, moveBy, moved, moveTo, orderedPools, type Job } from "../../src/pages/cluster/queue_data";

const job = (jobId: string, resourcePool = "line", priority = 30) => ({ jobId, resourcePool, priority, name: jobId }) as Job;
const JOBS = [job("a"), job("x", "other"), job("b"), job("c", "line", 50), job("y", "other"), job("z", "alone")];

test("a job moves to another's place: ahead of it from below, behind it from above", () => {
    assert.deepEqual(moveTo(JOBS, "c", "a"), { jobId: "c", aheadOf: "a" });
    assert.deepEqual(moveTo(JOBS, "a", "c"), { jobId: "a", behindOf: "c" });
    for (const [id, target] of [["a", "a"], ["a", "x"], ["a", "gone"], ["gone", "a"], ["gone", "gone"]] as const) assert.equal(moveTo(JOBS, id, target), null);
});

test("by one place, past jobs of other pools, not past the ends", () => {
    assert.deepEqual(moveBy(JOBS, "a", 1), { jobId: "a", behindOf: "b" });
    assert.deepEqual(moveBy(JOBS, "b", -1), { jobId: "b", aheadOf: "a" });
    assert.deepEqual([moveBy(JOBS, "a", -1), moveBy(JOBS, "c", 1), moveBy(JOBS, "z", 1), moveBy([], "a", 1), moveBy(JOBS, "gone", 1)], [null, null, null, null, null]);
});

test("only where the pool keeps an order and there is another place", () => {
    const ordered = orderedPools([{ name: "line", schedulerType: "SCHEDULER_TYPE_PRIORITY" }, { name: "other", schedulerType: "SCHEDULER_TYPE_FAIR_SHARE" },
        { name: "alone", schedulerType: "SCHEDULER_TYPE_PRIORITY" }]);
    assert.deepEqual(JOBS.filter((j) => canMove(JOBS, j, ordered)).map((j) => j.jobId), ["a", "b", "c"]);
});

test("what a move did, in words", () => {
    const name = (j: Job) => j.name;
    assert.equal(moved(JOBS, { jobId: "b", aheadOf: "a" }, name), "b is ahead of a now.");
    assert.equal(moved(JOBS, { jobId: "b", behindOf: "c" }, name), "b is behind c now, with its priority 50.");
    assert.equal(moved(JOBS, { jobId: "gone", behindOf: "c" }, name), "");
});
