import assert from "node:assert/strict";
import { test } from "node:test";
import { SCHEMA } from "../../../src/api/schema.gen";
import { offersAt } from "../../../src/ui/editor/yaml_complete";

/* What is offered where "|" stands. */
function offered(text: string): string[] {
    return (offersAt(text.replace("|", ""), text.indexOf("|"))?.of ?? []).map((o) => o.text);
}

test("keys of the map that the place is in", () => {
    assert.ok(offered("|").includes("searcher: "));
    assert.ok(!offered("|").some((o) => o.includes(".")));
    assert.ok(offered("searcher:\n  name: single\n  m|").includes("max_length: "));
    assert.ok(offered("name: x\n\n# words\nresources:\n\n  slots|\nsearcher:\n").includes("slots_per_trial: "));
    assert.ok(offered("searcher:\n  name: single\nre|").includes("resources: "));
    assert.deepEqual(offered("no_such:\n  |"), []);
});

test("keys in lists, at their first and at later lines, indented or not", () => {
    for (const text of ["bind_mounts:\n  - |", "bind_mounts:\n- |", "bind_mounts:\n  - host_path: /a\n    |", "bind_mounts:\n- host_path: /a\n  |", "bind_mounts:\n  - host_path: /a\n  - |"])
        assert.ok(offered(text).includes("container_path: "), text);
    assert.ok(offered("log_policies:\n  - pattern: x\n    action:\n      |").includes("type: "));
});

test("words that a key takes, and a space's", () => {
    assert.deepEqual(offered("checkpoint_policy: |"), ["best", "all", "none"]);
    assert.deepEqual(offered("searcher:\n  smaller_is_better: f|"), ["true", "false"]);
    assert.ok(offered("searcher:\n  name: |").includes("adaptive_asha"));
    assert.deepEqual(offered("hyperparameters:\n  lr:\n    type: |"), ["const", "int", "double", "log", "categorical"]);
    assert.ok(offered("hyperparameters:\n  lr:\n    m|").includes("minval: "));
    assert.deepEqual(offered("entrypoint: |"), []);
    assert.deepEqual(offered("name: a b|"), []);
});

test("the whole of the master's table is known", () => {
    assert.ok(SCHEMA.length > 100);
    assert.equal(new Set(SCHEMA.map((k) => k.path)).size, SCHEMA.length);
});
