import assert from "node:assert/strict";
import { test } from "node:test";
import { EXP_VIEW, expQuery, expView, idsOf, logQuery, logView, numberOf, rangeOf, type ExpView } from "../../../src/state/address";
import { wholeAddress } from "../../../src/state/part";

test("a view is its address and back", () => {
    const v: ExpView = {
        x: "time", metric: "validation.top 5/accuracy.é", logX: true, logY: true, smooth: 0.6, zoom: [-1.5, 2e-7],
        brush: [{ name: "a:b..c&d=e", lo: 1e-5, hi: 0.25 }, { name: "net.act", lo: 0, hi: 1 }], trials: [7, 9],
        tab: "scatter", scatterX: "lr", scatterY: "<b>", colour: "validation.a&b.min", sort: ["-hp.lr", "best,x"], group: ["lr", "a&b"], axes: ["lr", "a&b=c"], file: "lib/a&b #1.py", log: 12, isWhole: true,
    };
    assert.deepEqual(expView(expQuery(v)), v);
    assert.equal(expQuery(expView(expQuery(v))), expQuery(v));
    assert.equal(expQuery(EXP_VIEW), "");
    assert.deepEqual(expView(""), EXP_VIEW);
});

test("the design's own address", () => {
    const v = expView("?x=batches&m=accuracy&y=log&brush=lr:1e-3..1e-2&t=7,9");
    assert.deepEqual([v.metric, v.logY, v.brush, v.trials], ["accuracy", true, [{ name: "lr", lo: 1e-3, hi: 1e-2 }], [7, 9]]);
});

test("a list that is whole stays so as something else is turned", () => {
    const before = new URL(wholeAddress("/det/experiments/7", new URLSearchParams("tab=checkpoints")), "http://a").search;
    const after = expQuery({ ...expView(before), logY: true });
    assert.deepEqual([new URLSearchParams(after).get("all"), expView(after).isWhole, expView("?all=2").isWhole], ["1", true, false]);
});

test("hostile addresses give a plain view", () => {
    for (const q of ["?x=javascript:alert(1)&tab=../../etc&y=LOG&z=1..", "?z=2..1&brush=lr&brush=:1..2&brush=lr:a..b&t=-1,x,1e3,0",
        "?z=NaN..Infinity&smooth=1e999&t=99999999999999999999", "?%E0%A4%A&=&&&?x", "?z=1..2..3&brush=lr:1e999..2"]) {
        const v = expView(q);
        assert.deepEqual({ ...v }, EXP_VIEW, q);
    }
    assert.equal(expView("?m=" + "x".repeat(1e5)).metric.length, 1000);
    assert.equal(expView("?file=" + "x".repeat(1e5)).file.length, 4096);
    assert.equal(expView("?t=" + Array.from({ length: 5000 }, (_, i) => i + 1).join(",")).trials.length, 1000);
    assert.equal(expView("?smooth=7").smooth, 0.99);
});

test("numbers, ranges and ids", () => {
    assert.deepEqual(["1", "-2.5e-3", ".5", "5.", "0x10", "", " 1", "1e999", null].map(numberOf), [1, -0.0025, 0.5, 5, null, null, null, null, null]);
    assert.deepEqual([rangeOf("1..2"), rangeOf("-1e-3..-1e-4"), rangeOf("2..1"), rangeOf("1")], [[1, 2], [-1e-3, -1e-4], null, null]);
    assert.deepEqual(idsOf("3,3,007,9"), [3, 9]);
});

test("logs: filters in the query, the line in the hash", () => {
    const v = { search: "a b&c#d%", regex: true, between: true, levels: ["WARNING", "ERROR"] as ("WARNING" | "ERROR")[], ranks: [0, 3], hosts: ["a,b"], outputs: ["stderr"], sources: ["x y", "z"], line: 12345 };
    const text = logQuery(v);
    const [query, hash] = text.split(/(?=#)/);
    assert.deepEqual(logView(query!, hash!), v);
    assert.deepEqual(logView("?level=SHOUT,ERROR&rank=x,-1,2", "#l=1;2"), { search: "", regex: false, between: false, levels: ["ERROR"], ranks: [2], hosts: [], outputs: [], sources: [], line: 0 });
    assert.equal(logQuery(logView("", "")), "");
    assert.equal(logQuery({ ...logView("", ""), search: "b" }, "tab=logs&log=7&search=a&rankId=3"), "?tab=logs&log=7&search=b"); // beside other things
});
