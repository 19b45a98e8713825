import assert from "node:assert/strict";
import { test } from "node:test";
import { match, navigate, path, query } from "../../../src/state/router";
import { addressOf } from "../../../src/api/client";

test("a path's variables are decoded, and a broken escape names nothing", () => {
    assert.deepEqual(match("/det/experiments/:id", "/det/experiments/7/"), { id: "7" });
    assert.deepEqual(match("/det/models/:name", "/det/models/a%2Fb"), { name: "a/b" });
    assert.equal(match("/det/models/:name", "/det/models/%zz"), null);
    assert.equal(match("/det/experiments", "/det/experiments/7"), null);
});

test("an address has its variables escaped, repeats lists, and leaves out what is not set", () => {
    assert.equal(addressOf("/api/v1/models/{name}", { name: "a/b ?" }), "/api/v1/models/a%2Fb%20%3F");
    assert.equal(addressOf("/x", {}, { a: [1, 2], b: "", c: undefined, d: false, e: "&" }), "/x?a=1&a=2&d=false&e=%26");
});

test("what an address points to within a page is no part of its query", () => {
    const shown: string[] = [];
    Object.assign(globalThis, { history: { replaceState: (_: null, __: string, to: string) => shown.push(to) } });
    navigate("/det/experiments/1?tab=logs&log=5#l=12", true);
    assert.deepEqual([shown, path.value, query.value.get("log")], [["/det/experiments/1?tab=logs&log=5#l=12"], "/det/experiments/1", "5"]);
});
