import assert from "node:assert/strict";
import { test } from "node:test";
import { match } from "../../../src/state/router";
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
