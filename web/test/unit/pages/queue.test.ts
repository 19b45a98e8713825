import assert from "node:assert/strict";
import { test } from "node:test";
import { canMove, moveBy, moved, moveTo, nextOf, orderedPools, type Job, standingChanges } from "../../../src/pages/cluster/queue_data";
import { entriesAsked, newestEntries, quotasOf } from "../../../src/pages/master/data";

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

test("what is served next is the first that waits and is not paused", () => {
    const at = (jobId: string, jobsAhead: number, state = "STATE_QUEUED", isPaused = false, pool = "line") => ({ ...job(jobId, pool), isPaused, summary: { state, jobsAhead } }) as Job;
    const jobs = [at("runs", 0, "STATE_SCHEDULED"), at("third", 3), at("paused", 0, "STATE_QUEUED", true), at("second", 2), at("elsewhere", 0, "STATE_QUEUED", false, "other"), job("unknown")];
    assert.deepEqual([nextOf(jobs, "line")?.jobId, nextOf(jobs, "other")?.jobId, nextOf(jobs, "none"), nextOf([], "line")], ["second", "elsewhere", null, null]);
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

test("what was changed of where a job stands, one update each, the pool last", () => {
    const was = { priority: 42, weight: 1, pool: "a" };
    assert.deepEqual(standingChanges("j", was, was), []);
    assert.deepEqual(standingChanges("j", was, { priority: 1, weight: 2, pool: "b" }), [{ jobId: "j", priority: 1 }, { jobId: "j", weight: 2 }, { jobId: "j", resourcePool: "b" }]);
});

test("quotas with what is held of them; a star is for those without one of their own", () => {
    const jobs = [{ username: "ada", resourcePool: "p", allocatedSlots: 2 }, { username: "ada", resourcePool: "q", allocatedSlots: 1 }, { username: "bob", resourcePool: "p", allocatedSlots: 3 }];
    const rows = quotasOf({ quotas: [{ user: "ada", pool: "p", slots: 4 }, { user: "*", pool: "p", slots: 5 }, { user: "ada", slots: 8 }] }, jobs);
    assert.deepEqual(rows.map((r) => [r.user, r.pool, r.slots, r.held]), [["ada", "p", 4, 2], ["everybody else", "p", 5, 0], ["bob", "p", 5, 3], ["ada", "", 8, 3]]);
    assert.deepEqual(quotasOf({}, jobs), []);
});

test("a record that is cut says so, and one that is not does not", () => {
    const of = (n: number, isWhole: boolean) => { const got = newestEntries(Array.from({ length: Math.min(n, entriesAsked(isWhole)) }, (_, i) => i), isWhole); return [got.entries.length, got.cut]; };
    assert.deepEqual([of(0, false), of(200, false), of(201, false)], [[0, ""], [200, ""], [200, "The newest 200 are shown."]]);
    assert.deepEqual([of(300, true), of(20_000, true)], [[300, ""], [10_000, "The newest 10,000 are shown."]]);
});
