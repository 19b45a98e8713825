import assert from "node:assert/strict";
import { test } from "node:test";
import { isSignedIn, ApiError } from "../../../src/api/client";
import { pauseAfter } from "../../../src/state/live";
import { me, start, startError } from "../../../src/state/session";

Object.assign(globalThis, { location: { search: "", pathname: "/det" } });

/* What the master answers, one after the other; 0: it is away. */
function answers(...statuses: number[]): () => number {
    let asked = 0;
    globalThis.fetch = async () => {
        const status = statuses[asked++]!;
        if (status === 0) throw new TypeError("away");
        return Response.json(status === 200 ? { user: { id: 1, username: "ann" } } : { error: { error: "not now" } }, { status });
    };
    isSignedIn.value = null;
    return () => asked;
}

test("a master that is away at the start is asked until it says whose session it is", async () => {
    const asked = answers(0, 503, 200), started = start();
    await new Promise((wake) => setTimeout(wake, 5));
    assert.deepEqual([isSignedIn.value, startError.value], [null, "the master does not answer"]);
    await started;
    assert.deepEqual([isSignedIn.value, me.value?.username, asked()], [true, "ann", 3]);
});

test("who is not signed in is told at once", async () => {
    for (const status of [401, 403]) {
        const asked = answers(status);
        await start();
        assert.deepEqual([isSignedIn.value, asked()], [false, 1]);
    }
});

test("pauses grow, and what would get the same answer is not asked again", () => {
    const after = (status: number) => [0, 1, 2, 20].map((n) => pauseAfter(new ApiError(status, ""), n));
    for (const status of [0, 429, 500, 502, 503]) assert.deepEqual(after(status), [1000, 2000, 4000, 30_000], String(status));
    assert.deepEqual(after(504), [30_000, 30_000, 30_000, 30_000]);
    for (const status of [400, 401, 403, 404]) assert.deepEqual(after(status), [null, null, null, null], String(status));
});
