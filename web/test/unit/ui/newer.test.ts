import assert from "node:assert/strict";
import { test } from "node:test";
import { isNewer } from "../../../src/ui/newer";

const html = (js: string) => `<link rel="stylesheet" href="/assets/app.A.css"><script type="module" src="/assets/${js}"></script>`;

test("another script than the open tab's is a newer page; an answer that is no page is not", () => {
    assert.equal(isNewer(html("app.OLD.js"), ["/assets/app.OLD.js"]), false);
    assert.equal(isNewer(html("app.NEW.js"), ["/assets/app.OLD.js"]), true);
    const extension = "moz-extension://0b/inpage.js";
    assert.deepEqual([isNewer(html("app.OLD.js"), ["/assets/app.OLD.js", extension]), isNewer(html("app.NEW.js"), [extension, "/assets/app.OLD.js"])], [false, true]);
    for (const text of ["", "<h1>502 Bad Gateway</h1>", '<script src="/elsewhere.js"></script>']) assert.equal(isNewer(text, ["/assets/app.OLD.js"]), false, text);
});
