import assert from "node:assert/strict";
import { test } from "node:test";
import { mistakesOf, pathOf } from "../../../src/state/mistakes";
import { placeOf } from "../../../src/ui/editor/yaml_place";

const TEXT = `name: x
searcher:
  name: single
  metric: [1, 2]
  max_length: {batches: 1}
bind_mounts:
  - host_path: /a
  - container_path: b
hyperparameters:
  "a.b": 1
  c:
    d.e: 2
`;
const at = (path: string, text = TEXT) => {
    const { from, to } = placeOf({ path, line: 0, column: 0, text: "" }, text);
    return text.slice(from, to);
};

test("what the master says is taken apart", () => {
    assert.deepEqual(mistakesOf("experiment configuration: searcher.name: unknown: use single"),
        [{ path: "searcher.name", line: 0, column: 0, text: "unknown: use single" }]);
    assert.deepEqual(mistakesOf("experiment configuration: 2 mistakes:\na: x\nb[1].c: y\nand 3 more").map((m) => [m.path, m.text]),
        [["a", "x"], ["b[1].c", "y"], ["", "and 3 more"]]);
    assert.deepEqual(mistakesOf("YAML: line 4, column 7: did not find expected key"),
        [{ path: "", line: 4, column: 7, text: "did not find expected key" }]);
    assert.deepEqual(mistakesOf("project \"a: b\" not found"), [{ path: "", line: 0, column: 0, text: "project \"a: b\" not found" }]);
    assert.deepEqual(mistakesOf("").length, 1);
    assert.deepEqual(pathOf("a.b[2].c"), ["a", "b", 2, "c"]);
});

test("a mistake is marked where its key stands, else where the deepest of its parents does", () => {
    assert.equal(at("name"), "name: x");
    assert.equal(at("searcher.metric"), "metric: [1, 2]");
    assert.equal(at("searcher.metric[1]"), "2");
    assert.equal(at("searcher.smaller_is_better"), "searcher:");
    assert.equal(at("searcher.max_length.batches"), "batches: 1");
    assert.equal(at("bind_mounts[1].container_path"), "container_path: b");
    assert.equal(at("bind_mounts[0].read_only"), "host_path: /a");
    assert.equal(at("hyperparameters.a.b"), "\"a.b\": 1");
    assert.equal(at("hyperparameters.c.d.e"), "d.e: 2");
    assert.equal(at("entrypoint"), "name: x");
    assert.equal(at("entrypoint", ""), "");
    assert.equal(at("a.b", "{a: {b: 1}}"), "b: 1");
    assert.equal(at("x", ": : [}\n\t- ["), ": : [}");
});

test("lines and columns of a text, and beyond its end", () => {
    const of = (line: number, column: number) => placeOf({ path: "", line, column, text: "" }, "ab\ncdef\ng");
    assert.deepEqual([of(2, 3), of(1, 1), of(3, 9), of(99, 1)].map((p) => [p.from, p.to]), [[5, 7], [0, 2], [9, 9], [8, 9]]);
});
