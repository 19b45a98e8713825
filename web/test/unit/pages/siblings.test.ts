import assert from "node:assert/strict";
import { test } from "node:test";
import { findSiblings } from "../../../src/pages/trial/siblings";

test("the trials before and after one are found in few requests, and none of what is not there", async () => {
    for (const total of [1, 2, 3, 4, 5, 1000]) {
        const all = Array.from({ length: total }, (_, i) => 7 + 3 * i);
        let asked = 0;
        const ask = async (offset: number) => { asked++; return { ids: all.slice(offset, offset + 3), total }; };
        for (const [i, id] of all.entries()) {
            asked = 0;
            assert.deepEqual(await findSiblings(id, ask), { place: i + 1, total, before: all[i - 1] ?? null, after: all[i + 1] ?? null });
            assert.ok(asked <= 2 + Math.log2(total) + 1, `${asked} requests for the ${i}th of ${total}`);
        }
        for (const id of [0, 8, 9999]) assert.equal(await findSiblings(id, ask), null);
    }
    assert.equal(await findSiblings(1, async () => ({ ids: [], total: 0 })), null);
    assert.equal(await findSiblings(2, async (offset) => ({ ids: offset ? [1, 2] : [0, 1, 2], total: 9 })), null, "a list that is not as long as it says");
});
