import assert from "node:assert/strict";
import { test } from "node:test";
import { askedOf, sharesOf, type Entry } from "../../../src/pages/cluster/use_data";

const now = new Date("2026-03-01T00:30:00Z"), asks = (text: string) => askedOf(new URLSearchParams(text), now);
const entry = (periodStart: string, byUsername: Record<string, number>): Entry => ({ periodStart, period: "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY", seconds: 0, byUsername, byExperimentLabel: {}, byResourcePool: {}, byAgentLabel: {}, byWorkspace: {} });

test("an address without days asks for the last of them, in UTC", () => {
    assert.deepEqual(asks(""), { groupBy: "day", after: "2026-02-16", before: "2026-03-01", by: "pool" });
    assert.deepEqual(asks("groupBy=month&by=user"), { groupBy: "month", after: "2025-10", before: "2026-03", by: "user" });
    assert.deepEqual(asks("groupBy=day&after=2026-01-01&before=2026-01-31&by=toString"), { groupBy: "day", after: "2026-01-01", before: "2026-01-31", by: "pool" });
    assert.equal(asks("groupBy=month&after=2026-01-01").after, "2025-10");
});

test("the largest come first, and beyond nine they are one", () => {
    const few = sharesOf([entry("2026-01-01", { ann: 3600, bob: 7200 }), entry("2026-01-02", { constructor: 1800 })], "user");
    assert.deepEqual(few, [{ key: "bob", hours: [2, 0], total: 2 }, { key: "ann", hours: [1, 0], total: 1 }, { key: "constructor", hours: [0, 0.5], total: 0.5 }]);
    const many = sharesOf([entry("2026-01-01", Object.fromEntries(Array.from({ length: 12 }, (_, i) => [`u${i}`, 3600 * (12 - i)])))], "user");
    assert.deepEqual([many.length, many.at(-1)], [10, { key: "3 others", hours: [6], total: 6 }]);
    assert.deepEqual(sharesOf([], "pool"), []);
});
