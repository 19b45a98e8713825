import assert from "node:assert/strict";
import { test } from "node:test";
import { Known } from "../../src/pages/people/people_data";

test("what is known is asked again where its row changed, when it is old, and after it was forgotten", async () => {
    let now = 0, asked = 0;
    const known = new Known<number>(1000, () => now), ask = async () => ++asked, of = (numMembers: number) => known.of({ groupId: 1, numMembers }, ask);
    assert.deepEqual([await of(1), await of(1), await of(2), await of(1)], [1, 1, 2, 1]);
    now = 1000;
    assert.equal(await of(1), 3);
    known.forget();
    assert.equal(await of(1), 4);
    known.forget();
    let answer: (n: number) => void = () => undefined;
    const before = known.of({ groupId: 1, numMembers: 1 }, () => new Promise<number>((done) => { answer = done; }));
    known.forget(); // changed while it was asked
    answer(0);
    assert.deepEqual([await before, await of(1)], [0, 5]);
});
