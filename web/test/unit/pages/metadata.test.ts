import assert from "node:assert/strict";
import { test } from "node:test";
import { replacing, textOf } from "../../../src/pages/models/metadata";

test("metadata is sent whole, so not what a page would send otherwise, nor over what was written meanwhile", async () => {
    const was = { lr: 0.5, n: 3 }, had = textOf(was), of = (text: string, now: Record<string, unknown> = was) => replacing(had, text, async () => now);
    assert.deepEqual(await of("lr: 0.25\nn: 3\n"), { lr: 0.25, n: 3 });
    assert.deepEqual(await of(""), {});
    await assert.rejects(of("lr: 0.25\n", { ...was, by: "a program" }), /changed meanwhile/);
    for (const text of ["lr: 1\nn: {deep: [9007199254740993]}", "n: {deep: [.nan]}", "n: {deep: [-.inf]}"]) await assert.rejects(of(text), /n\.deep\.0 is a number/);
    assert.deepEqual(await of("n: '9007199254740993'"), { n: "9007199254740993" });
});
