import assert from "node:assert/strict";
import { test } from "node:test";
import { Hits, unknown } from "../../../src/pages/trial/log_hits";
import type { Line } from "../../../src/ui/log/loglines";
import { logView } from "../../../src/state/address";

async function until(is: () => boolean, what: string): Promise<void> {
    for (let i = 0; !is(); i++) {
        assert.ok(i < 6000, `waited for ${what}`);
        await new Promise((wake) => setTimeout(wake, 5));
    }
}

/* A master whose log has as many lines as `most()` says, all of which match; the first answers are those refusals. */
function master(most: () => number, refusals: number[] = []) {
    const asked: number[] = [];
    globalThis.fetch = async (input) => {
        const q = new URL(String(input), "http://master").searchParams, from = Number(q.get("beyondId"));
        asked.push(from);
        const refusal = refusals.shift();
        if (refusal) return Response.json({ error: { error: "not now" } }, { status: refusal });
        const ids = Array.from({ length: Math.min(Number(q.get("limit")), most() - from) }, (_, i) => from + 1 + i);
        return new Response(ids.map((id) => JSON.stringify({ result: { id: String(id), log: "x" } }) + "\n").join(""));
    };
    return asked;
}

const hits = (changed = () => {}) => new Hits("key", "1", logView("search=x&between=1", ""), changed);

test("what is not known of a window", () => {
    assert.deepEqual([unknown({ from: 0, to: 0 }, 5, 9), unknown({ from: 5, to: 9 }, 5, 9), unknown({ from: 5, to: 9 }, 6, 12), unknown({ from: 5, to: 9 }, 4, 9)], [4, null, 9, 3]);
});

test("a log with new lines all the time is searched nevertheless", async () => {
    let last = 10;
    const asked = master(() => last), h = hits();
    const grows = setInterval(() => h.see(1, ++last), 5); // far more often than the window would rest
    h.see(1, last);
    await until(() => h.found.ids.size > 10, "the first matches");
    const had = h.found.ids.size;
    await until(() => h.found.ids.size > had, "more of them");
    clearInterval(grows);
    assert.deepEqual([asked[0], h.error], [0, ""]);
    h.end();
});

test("what is refused is said once, and not asked for again by a window that moves; what fails is", async () => {
    const refused = master(() => 5, [400]), h = hits();
    h.see(1, 5);
    await until(() => h.error === "not now" && !h.isComing, "the refusal");
    h.see(1, 6);
    const failing = master(() => 5, [503]), other = hits();
    other.see(1, 5);
    await until(() => other.error === "not now" && other.isComing, "the failure");
    await until(() => other.error === "" && other.found.ids.size === 5, "the second try");
    assert.deepEqual([refused.length, failing.length], [1, 2]); // the second try came later than what h would have asked
    h.end();
    other.end();
});

test("of a window those are counted that are in it, and what it has left behind is forgotten", async () => {
    master(() => 10_000);
    const h = hits(), window = (first: number, last: number) => Array.from({ length: last - first + 1 }, (_, i) => ({ id: first + i }) as Line);
    h.see(1, 600);
    await until(() => h.found.to === 3000, "what is known far behind the window");
    assert.deepEqual([h.among(window(1, 600)), h.found.ids.size], [600, 3000]);
    h.see(2001, 5000);
    await until(() => h.found.to >= 5000, "the next");
    assert.deepEqual([h.among(window(2001, 5000)), Math.min(...h.found.ids), h.found.from], [3000, 2001, 2001]);
    h.end();
});

test("a window that is read anew, and so is empty for a while, is not searched meanwhile", async () => {
    const asked = master(() => 100_000), h = hits(), other = hits();
    h.see(3000, 3400);
    await until(() => h.found.ids.size > 0, "the first");
    h.see(1000, 1400);
    h.see(0, 0);
    for (let n = 0; n < 5; n++) { // each begins later than the one before, the last than any reading of h would
        other.see(1, 3000 * n + 1);
        await until(() => other.found.to === 3000 * (n + 1), "the other's");
    }
    h.see(100, 500);
    await until(() => h.found.from === 100, "the new window");
    assert.deepEqual(asked, [2999, 0, 3000, 6000, 9000, 12_000, 99]);
    h.end();
    other.end();
});
