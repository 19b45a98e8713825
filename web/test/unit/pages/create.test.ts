import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { bodyOf } from "../../../src/pages/create/data";
import { isWarm, sourceLine, warmText } from "../../../src/pages/create/warm";

const UUID = "0f8fad5b-d9cb-469f-a165-70867728950e";

test("a warm start has its source in the searcher; comments and order stay", () => {
    const text = "# why\nname: a # so it is called\nsearcher:\n  name: single # one\n  metric: x\n  max_length: {batches: 1}\nhyperparameters: {}\n";
    assert.equal(warmText(text, { trial: 7, checkpoint: "" }),
        "# why\nname: a # so it is called\nsearcher:\n  name: single # one\n  metric: x\n  max_length: { batches: 1 }\n  source_trial_id: 7\nhyperparameters: {}\n");
    const other = warmText(warmText(text, { trial: 7, checkpoint: "" }), { trial: 0, checkpoint: UUID });
    assert.ok(other.includes(`  source_checkpoint_uuid: ${UUID}\n`) && !other.includes("source_trial_id"), other);
    const long = `name: ${"many words ".repeat(30).trim()}`;
    assert.ok(warmText(`${long}\nsearcher: {name: single}\n`, { trial: 7, checkpoint: "" }).startsWith(`${long}\n`));
});

test("a searcher that stands elsewhere: what the text says decides, and what would have to be written is told", () => {
    const seven = { trial: 7, checkpoint: "" }, one = { trial: 0, checkpoint: UUID };
    const alias = "x: &s {name: single}\nsearcher: *s\n", merged = "x: &s\n  name: single\nsearcher:\n  <<: *s\n  metric: x\n", partly = "searcher: {metric: x}\n";
    for (const none of [alias, "name: a\n", "searcher: [", "searcher: null\n", ""]) assert.deepEqual([warmText(none, seven), isWarm(none, seven)], [none, false], none);
    for (const text of [merged, partly]) for (const w of [seven, one]) assert.equal(isWarm(warmText(text, w), w), true, text);
    assert.equal(isWarm("x: &s {source_trial_id: 7}\nsearcher: *s\n", seven), true);
    assert.equal(isWarm("searcher: {name: single, source_trial_id: 8}\n", seven), false);
    assert.deepEqual([sourceLine(seven), sourceLine(one)], ["source_trial_id: 7", `source_checkpoint_uuid: ${UUID}`]);
});

test("JSON is YAML too; what cannot be read stays as it is", () => {
    assert.deepEqual(parse(warmText('{"name":"a","searcher":{"name":"single","source_checkpoint_uuid":"x"}}', { trial: 7, checkpoint: "" })),
        { name: "a", searcher: { name: "single", source_trial_id: 7 } });
    for (const broken of ["", "searcher: [", "searcher: 3\n", "a: 1\na: 2\nsearcher: {name: x}\n", "[1]"]) assert.equal(warmText(broken, { trial: 7, checkpoint: "" }), broken);
});

test("a fork goes where its parent is, unless its text or its template says where", () => {
    const fork = { text: "name: a\n", template: "", parent: 3, project: 5 };
    assert.deepEqual(bodyOf(fork), { config: fork.text, parentId: 3, projectId: 5 });
    for (const other of [{ text: "name: a\nproject: b\nworkspace: c\n" }, { template: "t" }, { project: 0 }]) assert.ok(!("projectId" in bodyOf({ ...fork, ...other })));
});
