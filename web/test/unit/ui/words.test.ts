import assert from "node:assert/strict";
import { test } from "node:test";
import { plain, spans, visible } from "../../../src/ui/words/ansi";
import { bytes, count, number, numbers, percent, value } from "../../../src/ui/words/format";
import { asText, line, merge, trim, type Line, justBefore } from "../../../src/ui/log/loglines";
import { filesOf, sumsOf } from "../../../src/pages/trial/checkpoint_files";
import { Name, shown } from "../../../src/ui/words/name";
import { wholeLog } from "../../../src/pages/trial/logs";
import { ago, between, duration, full } from "../../../src/ui/words/time";

test("numbers in four digits", () => {
    const rows: [number | null, string][] = [[0, "0"], [-0, "0"], [1, "1"], [0.93124567, "0.9312"], [0.1 + 0.2, "0.3"], [1e-4, "1e-4"],
        [0.00012345, "1.234e-4"], [12345, "12345"], [12345.678, "12345.7"], [1e6, "1e6"], [1234567, "1.235e6"], [-3.2e-7, "-3.2e-7"],
        [NaN, "NaN"], [-Infinity, "-Infinity"], [null, ""], [999.96, "1000"], [0.001, "0.001"]];
    for (const [v, text] of rows) assert.equal(number(v), text, String(v));
    assert.deepEqual([value(0.12345), value("<b>"), value([1, { a: 2 }]), value(null), value(true)], ["0.1235", "<b>", '[1,{"a":2}]', "", "true"]);
});

test("a name that a row has no room for is cut, and its title has the whole", () => {
    const long = "\u202e" + "n".repeat(199), { title, children } = Name({ text: long, most: 48 }).props as { title?: string; children: string };
    assert.deepEqual([children, title], [`\ufffd${"n".repeat(47)}…`, `\ufffd${"n".repeat(199)}`]);
    assert.deepEqual([shown("short", 48), (Name({ text: "short", most: 48 }).props as { title?: string }).title, shown(long).length], ["short", undefined, 200]);
});

test("the marks of an axis have as many digits as tell them apart", () => {
    assert.deepEqual(numbers([0, 0.2, 0.4]), ["0", "0.2", "0.4"]);
    assert.deepEqual(numbers([1000.001, 1000.002, 1000.003]), ["1000.001", "1000.002", "1000.003"]);
    assert.deepEqual(numbers([0.93121, 0.93122]), ["0.93121", "0.93122"]);
    assert.deepEqual(numbers([1_000_000, 1_000_002]), ["1000000", "1000002"]);
    assert.deepEqual(numbers([1e6, 2e6, 3e6]), ["1e6", "2e6", "3e6"]);
    assert.deepEqual(numbers([1e-5, 1e-4, 1e-3]), ["1e-5", "1e-4", "0.001"]);
    assert.deepEqual([numbers([]), numbers([0.123456]), numbers([NaN, 1])], [[], ["0.1235"], ["NaN", "1"]]);
});

test("the files of a checkpoint, as a tool that sums reads them", () => {
    const hash = "xxh128:" + "0a".repeat(16), resources = { "b<i>": "2", "code/": "0", a: "1", "with\nline": "3" };
    const files = filesOf({ resources, hashes: { "b<i>": hash, gone: hash, "with\nline": hash } });
    assert.deepEqual(files.map((f) => [f.name, f.size, f.kind]), [["a", 1, ""], ["b<i>", 2, "xxh128"], ["with\nline", 3, "xxh128"]]);
    assert.equal(sumsOf(files), `${"0a".repeat(16)}  b<i>\n`);
    assert.equal(sumsOf(filesOf({ resources: { constructor: "1" }, hashes: {} })), "");
    assert.deepEqual(filesOf({ resources }).map((f) => f.digits), ["", "", ""]);
});

test("sizes, shares and counts", () => {
    assert.deepEqual([0, 1023, 1024, "1536", 5e9, -1, "x", null, ""].map(bytes), ["0 B", "1023 B", "1 KiB", "1.5 KiB", "4.66 GiB", "", "", "", ""]);
    assert.deepEqual([percent(0), percent(0.999), percent(1), percent(0.29), percent(undefined), percent(NaN)], ["0 %", "99 %", "100 %", "29 %", "", ""]);
    assert.deepEqual([count(1, "trial"), count(0, "trial"), count(1234, "try", "tries")], ["1 trial", "0 trials", "1,234 tries"]);
});

test("durations and times", () => {
    assert.deepEqual([0, 0.42, 9.96, 12, 61, 60, 3600, 7500, 90061, -5, NaN, null].map(duration),
        ["0 s", "0.42 s", "10 s", "12 s", "1 min 1 s", "1 min", "1 h", "2 h 5 min", "1 d 1 h", "0 s", "", ""]);
    const now = Date.parse("2026-11-25T12:00:00Z");
    const rows = ["2026-11-25T11:59:30Z", "2026-11-25T11:00:01Z", "2026-11-25T09:00:00Z", "2026-11-20T12:00:00Z", "nonsense", null];
    assert.deepEqual(rows.map((t) => ago(t, now)), ["just now", "59 min ago", "3 h ago", "5 d ago", "", ""]);
    assert.match(ago("2020-01-01T12:00:00Z", now), /^2020-01-01$/);
    assert.equal(full("2026-11-25T18:45:09.5Z"), "2026-11-26 00:15:09"); // the reader of these tests is in Calcutta (unit.mjs)
    assert.deepEqual([between("2026-11-25T11:59:30Z", null, now), between("2026-11-25T11:00:00Z", "2026-11-25T11:00:05Z", now), between(null, null, now)],
        [30, 5, null]);
});

test("ANSI becomes classes; every other escape does nothing", () => {
    assert.deepEqual(spans("a\x1b[1;31mred\x1b[0m b"), [{ text: "a", classes: [] }, { text: "red", classes: ["b", "f1"] }, { text: " b", classes: [] }]);
    assert.deepEqual(spans("\x1b[38;5;196mx\x1b[48;2;0;0;255my\x1b[39;49mz").map((s) => s.classes), [["f9"], ["f9", "g12"], []]);
    assert.deepEqual(spans("\x1b[92;4mx\x1b[24;39m"), [{ text: "x", classes: ["u", "f10"] }]);
    assert.equal(plain("\x1b]0;title\x07\x1b[2J\x1b[Hhello\x1b[?25l\x1b(B"), "hello\u241b(B");
    assert.equal(plain("10 %\r50 %\r100 %\r"), "100 %");
    assert.deepEqual(spans(""), []);
});

test("hostile lines stay text and show what they hide", () => {
    assert.deepEqual(spans("<img src=x onerror=alert(1)>"), [{ text: "<img src=x onerror=alert(1)>", classes: [] }]);
    assert.equal(visible("a\0b\u202ec\x7f"), "a\u2400b\ufffdc\u2421");
    for (const bad of ["\x1b[", "\x1b[999999999999m", "\x1b[38;5m", "\x1b[38;2;1m", "\x1b[;;;;m", "\x1b]8;;http://x", "\x1b[38:5:1m"])
        for (const s of spans(bad + "x")) assert.ok(s.classes.every((c) => /^(?:[bdiu]|[fg]\d+)$/.test(c)) && !s.text.includes("\x1b"), JSON.stringify(bad));
    assert.equal(spans("\x1b[31m".repeat(20000) + "x").length, 1);
});

const lines = (...ids: number[]): Line[] => ids.map((id) => line({ id: String(id), log: `l${id}\n`, level: "LOG_LEVEL_INFO", timestamp: "t" }));

test("the microsecond before a time", () => {
    assert.equal(justBefore(new Date("2026-01-01T00:00:00Z")), "2025-12-31T23:59:59.999999Z");
    assert.equal(justBefore(new Date("2026-01-01T00:00:00.500Z")), "2026-01-01T00:00:00.499999Z");
});

test("a window of lines grows at both ends, each line once", () => {
    const ids = (l: Line[]) => l.map((x) => x.id);
    assert.deepEqual(ids(merge(lines(5, 6), lines(7, 9))), [5, 6, 7, 9]);
    assert.deepEqual(ids(merge(lines(5, 6, 7), lines(3, 5, 6, 8))), [3, 5, 6, 7, 8]);
    assert.deepEqual(ids(merge([], lines(1))), [1]);
    assert.deepEqual(ids(trim(lines(1, 2, 3), 2, "newest")), [2, 3]);
    assert.deepEqual(ids(trim(lines(1, 2, 3), 2, "oldest")), [1, 2]);
    assert.equal(asText({ ...lines(1)[0]!, rank: 0 }, (t) => t), "[t] [rank=0] INFO: l1\n");
    assert.equal(asText(line({ id: "2", log: "x", level: "LOG_LEVEL_UNSPECIFIED" }), (t) => t), "[] x\n");
});

test("a whole log is read a part after the other", async () => {
    const of = (id: number): Line => ({ id, time: "t", level: "", rank: null, source: "", text: `l${id}` }), asked: number[] = [], told: number[] = [];
    const page = async (beyond: number) => {
        asked.push(beyond);
        return [1, 2, 3, 4, 5].filter((id) => id > beyond).slice(0, 2).map(of);
    };
    assert.equal(await (await wholeLog(page, 2, (n) => told.push(n))).text(), "[t] l1\n[t] l2\n[t] l3\n[t] l4\n[t] l5\n");
    assert.deepEqual([asked, told], [[0, 2, 4], [2, 4, 5]]);
});
