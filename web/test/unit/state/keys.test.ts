import assert from "node:assert/strict";
import { test } from "node:test";
import { fits, keyed, KEYS } from "../../../src/state/keys";
import type { View } from "../../../src/state/views";
import { viewCommands } from "../../../src/ui/palette";

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

test("the palette says whose a view of somebody else's is, whatever they are called", () => {
    const view = (name: string, username: string) => ({ name, username, address: "/det/clusters" }) as View;
    const all = viewCommands({ own: [view("mine", "ada")], shown: [view("best", "bob"), view("<b>", "\u202eeve\n<i>\u0007"), view("long", "x".repeat(500))] });
    assert.deepEqual(all.slice(0, 2).map((c) => [c.title, c.kind]), [["mine", "view"], ["best", "view of bob"]]);
    assert.ok(!/[\u202e\n\u0007]/.test(all[2]!.kind) && /^view of .*eve .*<i>/.test(all[2]!.kind), JSON.stringify(all[2]!.kind));
    assert.equal(all[3]!.kind, `view of ${"x".repeat(200)}…`);
});
