import assert from "node:assert/strict";
import { test } from "node:test";
import { askKept, keepLook, keepRowHeight, lookOf, mapOf, ownLook, rowHeight, rowHeightOf } from "../../../src/state/kept";

const set = (storagePath: string, key: string, value: unknown) => ({ storagePath, key, value: JSON.stringify(value) });
const look = (...all: ReturnType<typeof set>[]) => lookOf(mapOf(all));
const list = (key: string, value: unknown) => set("page.experiments", key, value);
const PLAIN = look();

test("any settings give a look", () => {
    assert.deepEqual([PLAIN.hps, PLAIN.metrics, PLAIN.pinned, PLAIN.heat, PLAIN.unheated], [[], [], 0, false, []]);
    for (const bad of [5, null, "x", {}, [1, null], -3, 1e9])
        assert.ok(look(list("columns", bad), list("pinnedColumnsCount", bad), list("heatmapOn", bad), list("heatmapSkipped", bad)).pinned <= 5);
    assert.deepEqual(lookOf(new Map([["page.experiments\ncolumns", "{"]])), PLAIN);
    const l = look(list("columns", ["pool", "hp.a,owner", "validation.loss.min", "<b>"]), list("pinnedColumnsCount", 3), list("heatmapOn", true));
    assert.deepEqual([l.columns, l.hps, l.metrics, l.pinned, l.heat], [["id", "name", "pool"], ["a,owner"], ["validation.loss.min"], 3, true]);
});

test("the height of rows is where Determined's page has it", () => {
    const of = (v: unknown) => rowHeightOf(mapOf([set("globalTableSettings", "rowHeight", v)]));
    assert.deepEqual(["TALL", "EXTRA_TALL", "toString", 5].map(of), ["TALL", "EXTRA_TALL", "MEDIUM", "MEDIUM"]);
});

test("a change is written by its keys alone, and no older answer undoes it", async () => {
    const wrote: unknown[] = [], held: (() => void)[] = [];
    globalThis.fetch = async (_url, init) => {
        if (init?.method === "POST") wrote.push(JSON.parse(String(init.body)).settings.map((s: { key: string }) => s.key));
        else await new Promise<void>((go) => held.push(go));
        return new Response(JSON.stringify({ settings: [set("globalTableSettings", "rowHeight", "SHORT")] }), { status: 200 });
    };
    const asked = askKept(new AbortController().signal);
    await keepRowHeight("TALL");
    held[0]!();
    await asked;
    assert.equal(rowHeight.value, "TALL");
    await keepLook({ hps: ["lr"] }, PLAIN);
    await keepLook({ pinned: 2 }, ownLook.value!);
    assert.deepEqual(wrote, [["rowHeight"], ["columns"], ["pinnedColumnsCount"]]);
    assert.deepEqual([ownLook.value!.hps, ownLook.value!.pinned], [["lr"], 2]);
    const again = askKept(new AbortController().signal);
    held[1]!();
    await again;
    assert.equal(rowHeight.value, "SHORT"); // another browser's
});
