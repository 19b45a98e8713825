import assert from "node:assert/strict";
import { test } from "node:test";
import { allows, askSorted, filterOf, formsetOf, inOrder, isPlain, VERBS } from "../../../src/pages/experiments/data";
import { heatStyle } from "../../../src/pages/experiments/heat";
import { luminance } from "../../../src/charts/palette";
import { shownColumns } from "../../../src/pages/experiments/columns";
import { hpCell, hpsOf, searches, specText } from "../../../src/pages/experiments/hp";
import { runsOf } from "../../../src/pages/experiments/search";
import { placesOf, rowPx } from "../../../src/pages/experiments/table";
import { ALL, between, isTicked, NONE, size, tick } from "../../../src/pages/experiments/selection";
import { inSight } from "../../../src/ui/table/virtual";
import { groupsCsv, groupsWords, said, sortedGroups, spreadText, type Group } from "../../../src/pages/experiments/groups_data";
import { columnsOf, isFiltered, listQuery, listView, type ListView } from "../../../src/state/list_address";

const PLAIN = listView("");

test("the spread of a group as it is written, and as a file", () => {
    assert.deepEqual([spreadText({ n: 0, mean: null, deviation: null }), spreadText({ n: 1, mean: 0.5, deviation: null }), spreadText({ n: 3, mean: 0.93124, deviation: 0.00412 }), spreadText({ n: 2, mean: null, deviation: null })],
        ["", "0.5", "0.9312 ± 0.0041", "too large"]);
    const g = { values: ["a,b", null], trials: 3, experiments: 2, metrics: [{ n: 2, mean: 1, deviation: 0.5, min: 0, max: 2 }], members: [] };
    assert.equal(groupsCsv(["tags", "hp.lr"], ["v.x.min"], [g]), 'label,lr,trials,experiments,v.x.min n,v.x.min mean,v.x.min deviation,v.x.min lowest,v.x.min highest\r\n"a,b",,3,2,2,1,0.5,0,2\r\n');
    const close = [1234567, 1234568, { a: 1 }].map((v) => ({ ...g, values: [v], metrics: [] }));
    assert.deepEqual(close.map((c) => said(c.values[0])), ["1234567", "1234568", '{"a":1}']);
    assert.equal(groupsCsv(["hp.x"], [], close), 'x,trials,experiments\r\n1234567,3,2\r\n1234568,3,2\r\n"{""a"":1}",3,2\r\n');
    assert.deepEqual(listView("?g=tags&g=tags&g=toString&g=hp.&g=hp.a&g=duration").group, ["tags", "hp.a"]);
});

const group = (values: unknown[], trials: number, ...means: (number | null)[]): Group =>
    ({ values, trials, experiments: 1, metrics: means.map((mean) => ({ n: 1, mean, deviation: null, min: mean, max: mean })), members: [] });

test("groups are sorted by the mean of a metric, by their size, by what they have in common; what has none comes last", () => {
    const all = [group(["b", 10], 5, 0.5), group(["a", 9], 4, null), group(["c", null], 4, 0.9), group(["a", 10], 1, -1)];
    const order = (...sort: string[]) => sortedGroups(all, ["tags", "hp.lr"], ["v.x.min"], sort).map((g) => all.indexOf(g)).join("");
    assert.deepEqual([order(), order("v.x.min"), order("-v.x.min"), order("trials"), order("-trials", "-v.x.min")], ["0123", "3021", "2031", "3120", "0213"]);
    assert.deepEqual([order("hp.lr"), order("-hp.lr"), order("tags", "-hp.lr"), order("v.gone.min")], ["1032", "0312", "3102", "0123"]);
    const got = (groups: number, total: number, isSorted: boolean) => groupsWords({ groups: Array(groups).fill(all[0]), total, trials: 9000 }, isSorted);
    assert.deepEqual([got(4, 4, true), got(1, 1, false)], ["4 groups of 9,000 trials", "1 group of 9,000 trials"]);
    assert.match(got(1000, 1234, false), /^1,234 groups of 9,000 trials; the largest 1,000 are shown$/);
    assert.match(got(1000, 1234, true), /the largest 1,000 are shown, and sorted among themselves: one that is not shown may come before them$/);
});

test("groups' order, open ones, chosen trials and just these experiments are in the address; what fits no grouping is not", () => {
    const of = (query: string) => { const { groupSort, open, trials, only } = listView(query); return { groupSort, open, trials, only }; };
    assert.deepEqual(of("?g=tags&g=hp.lr&gs=-v.x.min&gs=trials&gs=-trials&gs=toString&go=[1]&go=[&go={}&go=[\"a\",null]&t=7,x,9&e=3"),
        { groupSort: ["-v.x.min", "trials"], open: ['["a",null]'], trials: [7, 9], only: [3] });
    assert.deepEqual(of("?go=[]&gs=&t=&e=0"), { groupSort: [], open: ["[]"], trials: [], only: [] });
    const many = new URLSearchParams([["g", "id"], ...Array.from({ length: 50 }, (_, i) => ["go", `[${i}]`])]).toString();
    assert.equal(of(many).open.length, 20);
});

test("just these experiments are asked for as stretches of ids", () => {
    assert.deepEqual(runsOf([7, 2, 1, 3, 9, 10, 3]), [[1, 3], [7, 7], [9, 10]]);
    const { filterGroup } = JSON.parse(formsetOf({ ...PLAIN, only: [5, 6, 8] })), is = (operator: string, value: number) => ({ kind: "field", columnName: "id", operator, value });
    assert.deepEqual(filterGroup.children, [{ kind: "group", conjunction: "or", children: [{ kind: "group", conjunction: "and", children: [is(">=", 5), is("<=", 6)] }, is("=", 8)] }]);
    assert.deepEqual([isPlain(PLAIN), isPlain({ ...PLAIN, only: [5] }), isFiltered({ ...PLAIN, only: [5] })], [true, false, true]);
});

test("a view of the list is its address and back", () => {
    const v: ListView = { search: "a b&c#d%", states: ["active", "failed"], owners: [2, 7], labels: ["<b>", "x,y"], archived: "too",
        tree: { how: "and", children: [{ column: "hp.lr", op: "<", value: 0.01 }, { how: "or", children: [{ column: "tags", op: "isEmpty", value: null }, { column: "name", op: "contains", value: "ü&=" }] }] },
        sort: ["started", "-hp.a,b", "validation.loss.min"], columns: ["id", "name", "pool"], hps: ["lr", "net.width,é"], metrics: ["validation.a.b.min"], pinned: 2, heat: true, unheated: ["best", "validation.a.b.min"], group: ["tags", "hp.net.width,é"],
        groupSort: ["-validation.a.b.min", "hp.net.width,é"], open: ['["a&b=é",{"x":1}]'], trials: [3, 9], only: [1, 2, 4] };
    assert.deepEqual(listView(listQuery(v)), v);
    assert.equal(listQuery(listView(listQuery(v))), listQuery(v));
    assert.equal(listQuery(PLAIN), "");
    assert.deepEqual([PLAIN.sort, PLAIN.archived, PLAIN.columns, PLAIN.tree], [["-id"], "no", null, null]);
    assert.deepEqual([listView("?sort=name").sort, listView("?sort=-name&sort=x&sort=name&sort=id").sort], [["name"], ["-name", "id"]]);
});

test("hostile addresses give a plain list", () => {
    for (const q of ["?state=RUNNING,constructor&owner=-1,x,1e3&archived=yes&sort=toString&c=__proto__", "?sort=-hp.&label=&search=&mc=loss&mc=a.min",
        "?f=[", "?f={}", "?f={\"and\":1}", "?f={\"and\":[[1,2,3],[\"id\",\"~\",1],[\"id\",\"=\",{}]]}", "?f=[\"id\",\"=\",1]",
        "?%E0%A4%A&=&&&?x", "?sort=--id"])
        assert.deepEqual(listView(q), PLAIN, q);
    assert.equal(listView("?search=" + "x".repeat(1e5)).search.length, 1000);
    assert.deepEqual(columnsOf("pool,,nothing,id"), ["id", "name", "pool"]);
});

test("the master is asked for what the view says", () => {
    assert.deepEqual(filterOf(PLAIN), { name: "", states: [], userIds: [], labels: [], archived: false });
    assert.deepEqual(filterOf({ ...PLAIN, states: ["deleting"], archived: "too" }).states, ["STATE_DELETING", "STATE_DELETE_FAILED"]);
    assert.equal("archived" in filterOf({ ...PLAIN, archived: "too" }), false);
    assert.deepEqual([isPlain({ ...PLAIN, states: ["active", "failed"] }), isPlain({ ...PLAIN, states: ["failed", "queued"] })], [true, false]); // what no row has
    const { filterGroup: { children: [state] } } = JSON.parse(formsetOf({ ...PLAIN, states: ["queued", "running"] }));
    assert.deepEqual(state.children.map((c: { value: string }) => c.value), ["QUEUED", "RUNNING"]);
});

test("ticks: some, all, all but some", () => {
    const some = tick(tick(NONE, [1, 2, 3], true), [2], false), but = tick(tick(ALL, [2, 4], false), [4], true);
    assert.deepEqual([1, 2, 3].map((id) => isTicked(some, id)), [true, false, true]);
    assert.deepEqual([1, 2, 4].map((id) => isTicked(but, id)), [true, false, true]);
    assert.deepEqual([size(NONE, 9), size(some, 9), size(ALL, 9), size(but, 9), size(but, 0)], [0, 2, 9, 8, 0]);
});

test("what can be done in which state", () => {
    const can = (state: string, archived = false, unmanaged = false) => VERBS.filter((v) => allows(v, { state: state as never, archived, unmanaged })).join(" ");
    assert.equal(can("STATE_RUNNING"), "pause cancel kill move");
    assert.equal(can("STATE_QUEUED"), "pause cancel kill move");
    assert.equal(can("STATE_PAUSED"), "activate cancel kill move");
    assert.equal(can("STATE_STOPPING_CANCELED"), "kill move");
    assert.equal(can("STATE_COMPLETED"), "archive move delete");
    assert.equal(can("STATE_ERROR", true), "unarchive delete");
    assert.equal(can("STATE_DELETE_FAILED"), "move delete");
    assert.equal(can("STATE_DELETING"), "");
    assert.equal(can("STATE_RUNNING", false, true), "move");
    assert.equal(can("STATE_COMPLETED", false, true), "archive move delete");
});

test("hyperparameters as columns: constants, ranges, categories, nested ones", () => {
    const space = { lr: { type: "log", base: 10, minval: -4, maxval: -1 }, net: { width: { type: "int", minval: 8, maxval: 64 }, act: { type: "categorical", vals: ["relu", 1] } },
        wd: 0.5, c: { type: "const", val: "x" }, odd: null, list: [1, { type: "int" }] };
    const all = [...hpsOf(space)].map(([name, v]) => `${name}=${specText(v)}`);
    assert.deepEqual(all, ["lr=1e-4 … 0.1", "net.width=8 … 64", "net.act=relu, 1", "wd=0.5", "c=x", "odd=", "list=[1,{\"type\":\"int\"}]"]);
    assert.deepEqual([...hpsOf("x"), ...hpsOf(null)], []);
});

test("a hyperparameter's cell: the best trial's value, before there is one the range", () => {
    const config = { hyperparameters: { lr: { type: "double", minval: 0.1, maxval: 0.9 }, net: { width: { type: "int", minval: 8, maxval: 64 } }, wd: 0, obj: { type: "const", val: { a: 1 } } } };
    const best = { lr: 0.12345678, net: { width: 32 }, wd: 0, obj: { a: 1 } }, cell = (name: string, e = {}) => hpCell({ config, ...e } as never, name);
    assert.deepEqual([cell("lr").text, cell("lr").isRange, cell("wd").isRange, cell("gone").text], ["0.1 … 0.9", true, false, ""]);
    const found = cell("lr", { best, bestTrialId: 7 });
    assert.deepEqual([found.text, found.plain, found.isRange, found.title], ["0.1235", 0.12345678, false, "0.12345678 in trial 7, the best; searched: 0.1 … 0.9"]);
    assert.deepEqual(["net.width", "wd", "obj", "gone"].map((n) => cell(n, { best }).text), ["32", "0", "{\"a\":1}", ""]);
    assert.deepEqual([["lr"], ["wd", "obj"], ["gone"], ["wd", "net.width"]].map((n) => searches({ config } as never, n)), [true, false, false, true]);
});

test("hyperparameters stand beside what tells of the search", () => {
    const keys = (columns: string[], hps: string[]) => shownColumns(columns as never, hps).map((c) => c.key).join();
    assert.equal(keys(["id", "name", "best", "labels", "owner"], ["lr", "wd"]), "id,name,best,hp lr,hp wd,labels,owner");
    assert.equal(keys(["id", "name"], ["lr"]), "id,name,hp lr");
    assert.equal(keys(["id", "name", "archived"], []), "id,name,archived");
});

test("a card has a line for the box and the id, one for the name, and two others a line", () => {
    assert.deepEqual([2, 3, 4, 10].map((n) => rowPx(true, n)), [69, 97, 97, 181]);
    assert.equal(rowPx(false, 10), rowPx(false, 2));
});

test("the rows in sight and some beyond are in the document, and no others", () => {
    assert.deepEqual(inSight(0, 800, 0, 36), [0, 0]);
    assert.deepEqual(inSight(0, 0, 100, 36), [0, 6]);
    assert.deepEqual(inSight(0, 800, 10, 36), [0, 10]);
    assert.deepEqual(inSight(36 * 1000 + 1, 720, 100_000, 36), [994, 1027]);
    assert.deepEqual(inSight(36 * 100_000 - 720, 720, 100_000, 36), [99_974, 100_000]);
    assert.deepEqual(inSight(36 * 1000, 720, 5, 36), [0, 5], "there are fewer by now than it was scrolled past");
});

test("a range goes from row to row, wherever they are by now", () => {
    const rows = (...ids: number[]) => ids.map((id) => ({ id }));
    assert.deepEqual(between(rows(9, 8, 7, 6), 9, 7), [9, 8, 7]);
    assert.deepEqual(between(rows(11, 10, 9, 8, 7, 6), 9, 7), [9, 8, 7]); // two have come
    assert.deepEqual(between(rows(6, 7, 8, 9), 9, 7), [7, 8, 9]);
    assert.deepEqual([between(rows(9, 8), 8, 8), between(rows(9, 8), 7, 8), between(rows(9, 8), 9, 3)], [[8], null, null]);
});

test("a number's colour is by the range of all; what is no number has none", () => {
    const range = { lo: 0, hi: 10, isTurned: false }, at = (v: unknown) => heatStyle(range, v, false);
    assert.deepEqual([at("NaN"), at(undefined), at(NaN), heatStyle(undefined, 1, false)], [null, null, null, null]);
    assert.deepEqual([at(-5), at(99)], [at(0), at(10)]);
    assert.notDeepEqual(at(2), at(8));
    for (const v of [0, 3, 5, 8, 10]) for (const dark of [false, true]) {
        const { background, color } = heatStyle(range, v, dark)!, back = luminance(background.match(/\d+/g)!.map(Number) as never), ink = color === "#000000" ? 0 : 1;
        assert.ok((Math.max(back, ink) + 0.05) / (Math.min(back, ink) + 0.05) >= 4.5, `${v} ${background}`);
    }
});

test("light is good: where lower is better the colours are turned, by the row's own search or by the column's", () => {
    const range = { lo: 0, hi: 10, isTurned: false }, turned = { ...range, isTurned: true };
    assert.deepEqual([heatStyle(turned, 2, false), heatStyle(turned, 0, true)], [heatStyle(range, 8, false), heatStyle(range, 10, true)]);
    assert.deepEqual([heatStyle(range, 2, false, true), heatStyle(turned, 2, false, false)], [heatStyle(range, 8, false), heatStyle(range, 2, false)]);
    const [best, own, other] = shownColumns(["best"], [], ["validation.loss.min", "validation.error.min"]).map((c) => c.kind.isTurned!);
    const e = (smaller: boolean) => ({ config: { searcher: { name: "grid", metric: "loss", smaller_is_better: smaller } } }) as never;
    assert.deepEqual([true, false].map((s) => [best!(e(s)), own!(e(s)), other!(e(s))]), [[true, true, undefined], [false, false, undefined]]);
});

/* A master of `n` experiments by name, of which some end or come while it is read: each answer tells it. */
function movingMaster(n: number, changes: (live: Map<number, string>, answers: number) => void): { live: Map<number, string>; stop: () => void } {
    const live = new Map(Array.from({ length: n }, (_, i) => [i + 1, `name ${String((i * 7919) % n).padStart(6, "0")}`] as const)), real = globalThis.fetch;
    let answers = 0;
    globalThis.fetch = async (address) => {
        const q = new URL(String(address), "http://x").searchParams, after = Number(q.get("experimentIdFilter.gt") ?? 0), offset = Number(q.get("offset") ?? 0);
        const rows = [...live].filter(([id]) => id > after).sort(([a, x], [b, y]) => (q.get("sortBy") === "SORT_BY_NAME" ? (x < y ? -1 : 1) : q.get("orderBy") === "ORDER_BY_DESC" ? b - a : a - b));
        const body = JSON.stringify({ experiments: rows.slice(offset, offset + Number(q.get("limit"))).map(([id, name]) => ({ id, name })), pagination: { total: rows.length, startIndex: offset } });
        changes(live, ++answers);
        return new Response(body);
    };
    return { live, stop: () => { globalThis.fetch = real; } };
}

test("a file of the list has what matched all the while, each once, although rows come and go as it is read", async () => {
    for (const sort of ["-id", "id", "name"]) {
        const gone: number[] = [], m = movingMaster(4500, (live, answers) => {
            const id = sort === "-id" ? 4500 - answers : answers;
            gone.push(id);
            live.delete(id); // was on a page that is read already: what follows moves up by one
            live.set(5000 + answers, "a new one");
        });
        try {
            const rows = (await askSorted({ ...PLAIN, sort: [sort] }, () => undefined, new AbortController().signal)).map((e) => e.id), stays = [...m.live.keys()].filter((id) => id <= 4500);
            assert.deepEqual(stays.filter((id) => !rows.includes(id)), [], sort);
            assert.equal(new Set(rows).size, rows.length, sort);
            if (sort !== "name") assert.deepEqual(rows, [...rows].sort((a, b) => (sort === "id" ? a - b : b - a)));
        } finally {
            m.stop();
        }
    }
    assert.deepEqual(inOrder([{ id: 1 }, { id: 2 }, { id: 3 }, { id: 4 }], [3, 9, 1]).map((e) => e.id), [3, 1, 2, 4]);
});

test("columns that stay lie beside one another, after the box", () => {
    const columns = shownColumns(["id", "name", "state"], []);
    assert.deepEqual([0, 1, 3].map((n) => placesOf(columns, n)), [[], [44], [44, 114, 294]]);
});
