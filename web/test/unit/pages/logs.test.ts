import assert from "node:assert/strict";
import { test } from "node:test";
import { isSignedIn } from "../../../src/api/client";
import { Reader } from "../../../src/pages/trial/log_reader";
import { logView } from "../../../src/state/address";

const LINES = 6000; // twice what the window holds
const tab = Object.assign(new EventTarget(), { visibilityState: "visible" });
Object.assign(globalThis, { document: tab, requestAnimationFrame: (f: () => void) => setTimeout(f), cancelAnimationFrame: clearTimeout });

const sent = (id: number) => JSON.stringify({ result: { id: String(id), log: `line ${id}\n` } }) + "\n";

interface Open { from: number; says: (id: number) => void }

/* A master with a log whose end stays open; `open` are the streams that nobody has let go. */
function master(refusals: number[] = []) {
    const open = new Set<Open>();
    let asked = 0;
    globalThis.fetch = async (input, init) => {
        asked++;
        const refusal = refusals.shift();
        if (refusal === 0) throw new TypeError("away");
        if (refusal) return Response.json({ error: { error: "not now" } }, { status: refusal });
        const q = new URL(String(input), "http://master").searchParams, from = Number(q.get("beyondId") ?? 0), limit = Number(q.get("limit"));
        if (!q.has("follow")) {
            const isDown = q.get("orderBy") === "ORDER_BY_DESC", first = isDown ? (from || LINES + 1) - 1 : from + 1;
            const ids = Array.from({ length: limit }, (_, i) => first + (isDown ? -i : i)).filter((id) => id >= 1 && id <= LINES);
            return new Response(ids.map(sent).join(""));
        }
        return new Response(new ReadableStream({ start(c) {
            const mine = { from, says: (id: number) => c.enqueue(new TextEncoder().encode(sent(id))) };
            open.add(mine);
            init!.signal!.addEventListener("abort", () => { open.delete(mine); c.error(init!.signal!.reason); });
        } }));
    };
    return { open, asked: () => asked };
}

async function until(is: () => boolean, what: string): Promise<void> {
    for (let i = 0; !is(); i++) {
        assert.ok(i < 6000, `waited for ${what}`);
        await new Promise((wake) => setTimeout(wake, 5));
    }
}

function show(state: "visible" | "hidden"): void {
    tab.visibilityState = state;
    tab.dispatchEvent(new Event("visibilitychange"));
}

const reader = (query = "") => new Reader("1", logView(query, ""), () => undefined);

test("one stream follows the end, none where the end is out of the window or the tab hidden", async () => {
    const { open } = master(), r = reader(), only = () => [...open][0]!;
    r.start();
    await until(() => open.size === 1, "the stream");
    for (let round = 0; round < 3; round++) {
        await until(() => { r.older(); return !r.win.atEnd; }, "the end to be let go");
        assert.equal(open.size, 0);
        await until(() => { r.newer(); return r.win.atEnd && open.size > 0; }, "the end");
        assert.equal(open.size, 1);
    }
    show("hidden");
    assert.equal(open.size, 0);
    show("visible");
    show("visible");
    await until(() => open.size === 1, "the stream again");
    assert.equal(only().from, LINES);
    only().says(LINES + 1);
    await until(() => r.win.lines.at(-1)!.id === LINES + 1, "the new line");
    show("hidden");
    show("visible");
    await until(() => open.size === 1, "the stream again");
    assert.equal(only().from, LINES + 1);
    r.end();
    show("visible");
    assert.equal(open.size, 0);
});

test("a first reading that fails is tried again, and says so; what is refused waits for who signs in again", async () => {
    const away = master([0, 503]), r = reader();
    r.start();
    await until(() => r.error === "the master does not answer" && r.isComing, "the error");
    await until(() => r.error === "not now", "the second try");
    await until(() => away.open.size === 1 && r.win.lines.length === 500 && r.error === "", "the log");
    r.end();
    const out = master([401]), s = reader();
    s.start();
    await until(() => s.error === "not now" && !s.isComing, "the refusal");
    assert.equal(isSignedIn.value, false);
    isSignedIn.value = true;
    await until(() => out.open.size === 1 && s.error === "", "the log");
    assert.equal(out.asked(), 3);
    s.end();
    isSignedIn.value = null;
});

test("a tab that is opened behind another follows once it is seen", async () => {
    const { open, asked } = master(), r = reader();
    show("hidden");
    r.start();
    await until(() => r.win.lines.length === 500, "the lines");
    assert.deepEqual([open.size, asked()], [0, 1]);
    show("visible");
    await until(() => open.size === 1, "the stream");
    r.end();
    assert.equal(open.size, 0);
});
