import assert from "node:assert/strict";
import { test } from "node:test";
import { h } from "preact";
import { gridCsv } from "../../../src/ui/table/grid";
import { State } from "../../../src/ui/state";
import { Name } from "../../../src/ui/words/name";

test("a table as a file: names whole, times in full, states bare, nothing that is pressed; hostile names stay cells", () => {
    const long = "x".repeat(10_000), columns = [
        { head: "name", cell: (n: string) => h("a", { href: "/" }, h(Name, { text: n })) },
        { head: "state", cell: () => h(State, { state: "STATE_ERROR" }) }, { head: "versions", cell: () => 3 },
        { head: "changed", cell: () => h("span", { title: "2026-11-28 10:00:00" }, "2 h ago") },
        { head: "labels", cell: () => h("span", {}, ["a", null, false, h("span", {}, h(Name, { text: "b" })), h("button", { type: "button" }, "×")]) },
        { head: "", cell: () => h("button", { type: "button" }, "Delete") },
    ];
    const text = gridCsv({ rows: ["=1+1", "<b>\u202e\"q\",z", long], columns });
    assert.equal(text, `name,state,versions,changed,labels\r\n'=1+1,ERROR,3,2026-11-28 10:00:00,a b\r\n"<b>\u202e""q"",z",ERROR,3,2026-11-28 10:00:00,a b\r\n${long},ERROR,3,2026-11-28 10:00:00,a b\r\n`);
});
