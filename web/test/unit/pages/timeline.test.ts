import assert from "node:assert/strict";
import { test } from "node:test";
import { endOf, eventsOf, partsOf, reach, spent, type Event } from "../../../src/pages/experiment/timeline_data";
import { logOf } from "../../../src/pages/experiment/tabs";
import { spanOf } from "../../../src/pages/trial/timeline";

const event = (kind: string, offset: number, duration: number | null = null, runId = 1, ongoing = false): Event =>
    ({ kind, offset, duration, ongoing, runId, time: new Date(1000 * (100 + offset)).toISOString(), node: null, detail: "" }) as unknown as Event;

test("a bar ends at the time of what is told of with how long it took, and begins there of what goes on", () => {
    const of = (...e: Parameters<typeof event>) => spanOf(event(...e));
    assert.deepEqual([of("queued", 0, 2), of("placed", 2, 1), of("kill", 9, 1), of("preempted", 9, 3)], [[0, 2], [2, 3], [9, 10], [9, 12]]);
    assert.deepEqual([of("first_batch", 5, 3), of("validating", 8, 2), of("prepared", 3, 0.5)], [[2, 5], [6, 8], [2.5, 3]]);
    assert.deepEqual(of("checkpointing", 4, 2, 1, true), [4, 6]); // now
    assert.deepEqual([of("end", 9), of("stalled", 1, 30)], [[9, 9], [0, 1]]); // it began before the first that is known
});

test("a trial's states follow each other, run by run; what is done while it trains lies over that", () => {
    const first = [event("queued", 0, 4), event("placed", 4, 1), event("first_batch", 6, 2), event("validating", 9, 1), event("end", 10)];
    const parts = partsOf([...first, event("queued", 20, null, 2, true)], 125_000);
    assert.deepEqual(parts.map((p) => [p.phase, p.from / 1000 - 100, p.to / 1000 - 100, p.run]), [["waiting", 0, 4, 1], ["starting", 4, 6, 1], ["training", 6, 10, 1], ["waiting", 20, 25, 2], ["validating", 8, 9, 1]]);
    assert.deepEqual(spent(parts), { waiting: 9, starting: 2, training: 3, validating: 1, checkpointing: 0 });
    assert.deepEqual(partsOf([], 0), []);
    assert.deepEqual(partsOf([event("queued", 0), event("end", -1)], 0).map((p) => [p.phase, p.to - p.from]), [["waiting", 0]]); // clocks of hosts
});

test("whose log is shown where nobody chose", () => {
    const of = (...states: string[]) => logOf(states.map((s, i) => ({ id: i + 1, state: `STATE_${s}` as never })));
    assert.deepEqual([of("COMPLETED", "ERROR", "RUNNING"), of("COMPLETED", "QUEUED", "ERROR"), of("COMPLETED", "PAUSED"), of()], [3, 3, 1, 0]);
});

test("what has ended is asked once, and again after it was continued", async () => {
    const known = new Map<string, Event[]>(), asked: number[] = [], first = [event("queued", 0), event("end", 3)], second = [...first, event("queued", 9, null, 2)];
    let says = first;
    const of = async (state: string, endTime: string | null) => {
        const trial = { id: 7, state: `STATE_${state}` as never, endTime: endTime as never }, [got] = await eventsOf([trial], known, async (id) => { asked.push(id); return says; });
        return [got!.events.length, asked.length, endOf(trial)];
    };
    assert.deepEqual([await of("COMPLETED", "t3"), await of("COMPLETED", "t3")], [[2, 1, "7 t3"], [2, 1, "7 t3"]]);
    says = second;
    assert.deepEqual([await of("RUNNING", null), await of("COMPLETED", "t12")], [[3, 2, "7"], [3, 3, "7 t12"]]);
    says = [...second, event("end", 12, null, 2)];
    assert.deepEqual([await of("COMPLETED", "t12"), await of("COMPLETED", "t12")], [[4, 4, "7 t12"], [4, 4, "7 t12"]]); // its second end came late
});

test("the reach of more parts than a call takes arguments", () => {
    const parts = Array.from({ length: 200_000 }, (_, i) => ({ phase: "training" as const, from: i, to: i + 2, run: 1 }));
    assert.deepEqual(reach(parts), [0, 200_001]);
});
