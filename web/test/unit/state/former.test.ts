import assert from "node:assert/strict";
import { test } from "node:test";
import { formerList } from "../../../src/state/former";
import { listView } from "../../../src/state/list_address";

const kept = (key: string, value: unknown, project = 7) => ({ key, storagePath: `experimentListingForProject${project}`, value: JSON.stringify(value) });
const field = (columnName: string, operator: string, value: unknown) => ({ kind: "field", columnName, operator, value, location: "x", type: "y" });
const filterset = JSON.stringify({ showArchived: true, filterGroup: { kind: "group", conjunction: "and", children: [field("state", "=", "COMPLETED"), field("startTime", ">", "2026-03-05T00:00:00Z"), { kind: "group", conjunction: "and", children: [] },
    { kind: "group", conjunction: "or", children: [field("validation.accuracy.last", ">=", 0.9), field("hp.lr", "<", 0.01)] }] } });

test("what Determined's page kept of a project's list is an address", () => {
    const settings = [kept("filterset", filterset), kept("sortString", "numTrials=asc,validation.loss.min=desc,gone=asc"), kept("columns", ["id", "name", "user", "hp.lr", "validation.loss.min", "<b>"]),
        kept("sortString", "id=asc", 8), { key: "rowHeight", storagePath: "globalTableSettings", value: "\"TALL\"" }];
    const { address, left } = formerList(settings, 7)!, view = listView(address.slice(address.indexOf("?")));
    assert.ok(address.startsWith("/det/experiments?") && left === 0);
    assert.deepEqual(view.tree, { how: "and", children: [{ column: "projectId", op: "=", value: 7 }, { column: "state", op: "=", value: "COMPLETED" }, { column: "startTime", op: ">", value: "2026-03-05" },
        { how: "or", children: [{ column: "validation.accuracy.last", op: ">=", value: 0.9 }, { column: "hp.lr", op: "<", value: 0.01 }] }] });
    assert.deepEqual([view.pinned, view.heat, view.unheated], [null, null, []]);
    assert.deepEqual([view.sort, view.columns, view.hps, view.metrics, view.archived], [["trials", "-validation.loss.min"], ["id", "name", "owner"], ["lr"], ["validation.loss.min"], "too"]);
});

test("a time without a value stays one; conditions nested too deeply are counted", () => {
    const group = (...children: unknown[]) => ({ kind: "group", conjunction: "or", children }), id = (n: number) => field("id", "=", n);
    const of = (...children: unknown[]) => { const f = formerList([kept("filterset", { filterGroup: { kind: "group", conjunction: "and", children } })], 7)!; return { left: f.left, tree: listView(f.address.slice(f.address.indexOf("?"))).tree }; };
    assert.deepEqual(of(field("startTime", ">", null), field("endTime", "isEmpty", null)), { left: 0, tree: { how: "and", children: [{ column: "projectId", op: "=", value: 7 }, { column: "startTime", op: ">", value: null }, { column: "endTime", op: "isEmpty", value: null }] } });
    assert.equal(of(group(id(1), group(id(2), group(id(3))))).left, 0);
    assert.equal(of(group(id(1), group(id(2), group(id(3), group(id(4), id(5)))))).left, 2);
});

test("what is not there, or cannot be read, is no address", () => {
    assert.deepEqual([[], [kept("columns", ["id"], 8)], [kept("compare", true)], [kept("filterset", "{}")], [{ ...kept("filterset", 0), value: "{" }], [kept("filterset", { filterGroup: { kind: "group", children: [] } })]]
        .map((s) => formerList(s, 7)), [null, null, null, null, null, null]);
});

test("columns that stayed and colours of numbers are in it, too", () => {
    const { address } = formerList([kept("pinnedColumnsCount", 3), kept("heatmapOn", true), kept("heatmapSkipped", ["searcherMetricsVal", "validation.loss.min", 5])], 7)!;
    const { pinned, heat, unheated } = listView(address.slice(address.indexOf("?")));
    assert.deepEqual([pinned, heat, unheated], [3, true, ["best", "validation.loss.min"]]);
});
