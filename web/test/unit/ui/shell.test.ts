import assert from "node:assert";
import { test } from "node:test";
import { word } from "../../../src/ui/words/shell";

test("a word of a command", () => {
    assert.equal(word("plain-name_1.2@x"), "plain-name_1.2@x");
    assert.equal(word(""), "''");
    assert.equal(word("two words"), "'two words'");
    assert.equal(word("x; rm -rf ~"), "'x; rm -rf ~'");
    assert.equal(word("it's $(id) `id`"), "'it'\\''s $(id) `id`'");
    assert.ok(!word("a\nb\u202e").includes("\n"));
});
