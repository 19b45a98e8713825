import assert from "node:assert/strict";
import { test } from "node:test";
import { fits, keyed, KEYS } from "../../src/state/keys";

test("keys alone, after one another, and what is none", () => {
    assert.deepEqual(keyed("", "j"), { deed: "down", pending: "" });
    assert.deepEqual(keyed("", "g"), { deed: null, pending: "g" });
    assert.deepEqual(keyed("g", "e"), { deed: "/det/experiments", pending: "" });
    assert.deepEqual(keyed("g", "k"), { deed: "up", pending: "" });
    assert.deepEqual(keyed("g", "g"), { deed: null, pending: "g" });
    assert.deepEqual(keyed("g", "q"), { deed: null, pending: "" });
    assert.equal(new Set(KEYS.map((k) => k.keys)).size, KEYS.length);
});

test("the palette's words fit in any order", () => {
    assert.deepEqual([fits("New experiment", "exp new"), fits("New experiment", ""), fits("New experiment", "old"), fits("a(b", "(")], [true, true, false, true]);
});
