import assert from "node:assert/strict";
import { test } from "node:test";
import { wentOn } from "../../../src/pages/experiment/rungs";
import { changedLines, merged } from "../../../src/state/merge";

const BASE = "a\nb\nc\nd\ne";

test("what somebody changed, by lines", () => {
    assert.deepEqual(changedLines(BASE, "a\nB\nc\nd\ne\nf"), ["- b", "+ B", "+ f"]);
    assert.deepEqual([changedLines("", "x\ny"), changedLines("x", ""), changedLines(BASE, BASE)], [["+ x", "+ y"], ["- x"], []]);
    assert.equal(changedLines("x\n".repeat(3000), "y\n".repeat(3000)).length, 3001);
});

test("changes of different places come together, of the same place they do not", () => {
    assert.equal(merged(BASE, "A\nb\nc\nd\ne", "a\nb\nc\nd\nE\nf"), "A\nb\nc\nd\nE\nf");
    assert.equal(merged(BASE, "a\nc\nd\ne", "a\nb\nc\nd\nx\ne"), "a\nc\nd\nx\ne");
    assert.deepEqual([merged(BASE, "a\nM\nc\nd\ne", "a\nT\nc\nd\ne"), merged("", "mine", "theirs"), merged("x\n".repeat(3000), "", "x")], [null, null, null]);
    assert.equal(merged(BASE, BASE, "other"), "other");
});

test("ends of lines are theirs, whatever a text box made of them", () => {
    const dos = (text: string) => text.replaceAll("\n", "\r\n");
    assert.deepEqual(changedLines(dos(BASE), "a\nB\nc\nd\ne"), ["- b", "+ B"]);
    assert.equal(merged(dos(BASE), "A\nb\nc\nd\ne", dos("a\nb\nc\nd\nE")), dos("A\nb\nc\nd\nE"));
    assert.equal(merged("x\nx", "x\nx\nx", "x\nx"), "x\nx\nx");
});

test("who went on, and that the rung has grown since", () => {
    assert.equal(wentOn({ validated: 16, wentOn: 4 }, 2, 4), "it stands at place 2 of the 16 that have come here; about one in 4 goes on, 4 so far");
    assert.ok(wentOn({ validated: 16, wentOn: 4 }, 9, 4).endsWith("; it was among the best when fewer trials had come this far"));
});
