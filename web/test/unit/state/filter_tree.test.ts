import assert from "node:assert/strict";
import { test } from "node:test";
import { formset, sortText, statOf } from "../../../src/pages/experiments/search";
import { isPlain } from "../../../src/pages/experiments/data";
import { operatorsOf, requestOf, treeOf, treeText, wordsOf, type Group } from "../../../src/state/filter_tree";
import { isKey, listView, unreadOf } from "../../../src/state/list_address";

const TREE: Group = { how: "and", children: [{ column: "hp.lr", op: "<", value: 0.01 },
    { how: "or", children: [{ column: "validation.acc.max", op: ">=", value: 0.9 }, { column: "tags", op: "isEmpty", value: null }] }] };

test("a tree is its text and back; what is no tree is none", () => {
    assert.deepEqual(treeOf(treeText(TREE)), TREE);
    assert.equal(treeText(TREE), '{"and":[["hp.lr","<",0.01],{"or":[["validation.acc.max",">=",0.9],["tags","isEmpty"]]}]}');
    for (const t of [null, "", "1", "null", "[]", '{"or":[]}', '{"and":[[]]}', '{"and":[["id","=",1e999]]}', '{"__proto__":[["id","=",1]]}']) assert.equal(treeOf(t), null, String(t));
    const deep = (n: number): string => (n ? `{"and":[${deep(n - 1)}]}` : '["id","=",1]');
    assert.equal(treeOf(deep(4)) !== null && requestOf(treeOf(deep(4))) !== null, true);
    assert.equal(requestOf(treeOf(deep(5))), null);
    assert.equal(treeOf(`{"and":[${Array(500).fill('["id","=",1]').join()}]}`)!.children.length, 50);
});

test("what lacks its value is not asked; a day is the reader's whole day", () => {
    assert.equal(requestOf({ how: "and", children: [{ column: "name", op: "contains", value: "" }, { how: "or", children: [] }] }), null);
    const at = (d: number) => new Date(2026, 2, d).toISOString();
    const on = requestOf({ how: "or", children: [{ column: "startTime", op: "=", value: "2026-03-05" }, { column: "endTime", op: "<=", value: "2026-03-05" }, { column: "endTime", op: ">", value: "soon" }] });
    assert.deepEqual(on, { kind: "group", conjunction: "or", children: [
        { kind: "group", conjunction: "and", children: [{ kind: "field", columnName: "startTime", operator: ">=", value: at(5) }, { kind: "field", columnName: "startTime", operator: "<", value: at(6) }] },
        { kind: "field", columnName: "endTime", operator: "<", value: at(6) }] });
});

test("all that the view asks for goes into one request", () => {
    const v = { ...listView("?search=a&owner=2&label=x&archived=only"), tree: TREE }, got = JSON.parse(formset(v, ["ACTIVE", "PAUSED"]));
    assert.equal(got.showArchived, true);
    assert.deepEqual(got.filterGroup.children.map((c: { columnName?: string; children?: unknown[] }) => c.columnName ?? c.children!.length), ["name", 2, 1, "tags", "archived", 2]);
    assert.deepEqual(JSON.parse(formset(listView(""), [])), { filterGroup: { kind: "group", conjunction: "and", children: [] }, showArchived: false });
});

test("keys: columns by the master's names, hyperparameters and metrics by theirs", () => {
    assert.equal(sortText(["-trials", "hp.a.b", "-validation.loss.min"]), "numTrials=desc,hp.a.b=asc,validation.loss.min=desc");
    assert.deepEqual(["id", "-name", "hp.x", "validation.a.b.min", "hp.", "x", "a.b", "toString"].map(isKey), [true, true, true, true, false, false, false, false]);
    assert.deepEqual(["", "?sort=-name", "?sort=name&sort=id", "?sort=duration", "?mc=validation.loss.min", '?f={"and":[["id","=",1]]}'].map((q) => isPlain(listView(q))), [true, true, false, false, false, false]);
});

test("what the summary says of a metric, dots in its name or not", () => {
    const s = { validation_metrics: { "a.b": { min: 0 } }, avg_metrics: { loss: { last: 3 } }, own: { x: { max: "Infinity" } } };
    assert.deepEqual(["validation.a.b.min", "training.loss.last", "own.x.max", "own.x.min", "validation.toString.min", "x"].map((c) => statOf(s, c)), [0, 3, "Infinity", undefined, undefined, undefined]);
    assert.equal(statOf(null, "own.x.max"), undefined);
});

test("words and operators", () => {
    assert.equal(wordsOf(TREE), "hp.lr < 0.01 and (validation.acc.max ≥ 0.9 or tags is empty)");
    assert.deepEqual([operatorsOf("state"), operatorsOf("text")[0], operatorsOf("number").includes("contains")], [["=", "!="], "contains", false]);
});

test("conditions that are not read are told of", () => {
    const asQuery = (f: string) => `?${new URLSearchParams({ f })}`;
    assert.deepEqual([unreadOf(""), unreadOf(asQuery(treeText(TREE)))], ["", ""]);
    assert.equal(unreadOf(asQuery("{")), "they cannot be read");
    assert.match(unreadOf(asQuery("x".repeat(6001))), /6,001 characters, and 6,000 are read/);
});
