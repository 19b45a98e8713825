import assert from "node:assert/strict";
import { test } from "node:test";
import { spanOf } from "../../../src/pages/trial/timeline";

const of = (kind: string, offset: number, duration: number | null, ongoing = false) => spanOf({ kind, offset, duration, ongoing } as Parameters<typeof spanOf>[0]);

test("a bar ends at the time of what is told of with how long it took, and begins there of what goes on", () => {
    assert.deepEqual([of("queued", 0, 2), of("placed", 2, 1), of("kill", 9, 1), of("preempted", 9, 3)], [[0, 2], [2, 3], [9, 10], [9, 12]]);
    assert.deepEqual([of("first_batch", 5, 3), of("validating", 8, 2), of("prepared", 3, 0.5)], [[2, 5], [6, 8], [2.5, 3]]);
    assert.deepEqual(of("checkpointing", 4, 2, true), [4, 6]); // now
    assert.deepEqual([of("end", 9, null), of("stalled", 1, 30)], [[9, 9], [0, 1]]); // it began before the first that is known
});
