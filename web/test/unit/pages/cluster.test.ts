import assert from "node:assert/strict";
import { test } from "node:test";
import { shown } from "../../../src/ui/words/name";
import { ailment, experimentOf, slotKind, slotWords } from "../../../src/pages/cluster/data";

const agent = { id: "agent-1", enabled: true, draining: false };
const slot = { id: "0", enabled: true, draining: false, state: "USABLE", stateText: "", forced: false, container: null };
const held = { ...slot, state: "FOREIGN", stateText: "held by process 7 (python) that is none of ours" };

test("a slot that its host takes for unusable is not free, and says why", () => {
    assert.deepEqual([slotKind(slot, agent), slotWords(slot, agent)], ["free", "slot 0 of agent-1: free"]);
    assert.deepEqual([slotKind(held, agent), slotWords(held, agent)],
        ["out", "slot 0 of agent-1: not usable: held by process 7 (python) that is none of ours"]);
    assert.equal(slotKind({ ...held, forced: true }, agent), "free");
    assert.equal(slotWords({ ...held, forced: true }, agent), "slot 0 of agent-1: free; used all the same: held by process 7 (python) that is none of ours");
    assert.equal(slotKind({ ...held, enabled: false }, agent), "off");
    assert.equal(slotWords({ ...held, stateText: "" }, { ...agent, draining: true }), "slot 0 of agent-1: draining; not usable: foreign");
    assert.equal(ailment({ id: "0", enabled: true, draining: false }), ""); // a master of before
});

test("what a task does not use is said", () => {
    const taken = { ...slot, container: { parent: "12.abc.1" } };
    assert.deepEqual([slotKind(taken, agent), slotWords(taken, agent)], ["taken", "slot 0 of agent-1: experiment 12"]);
    assert.equal(slotWords({ ...taken, gpu: { idleSeconds: 599 } }, agent), "slot 0 of agent-1: experiment 12");
    assert.equal(slotWords({ ...taken, gpu: { idleSeconds: 725 } }, agent), "slot 0 of agent-1: experiment 12; no work for 12 min");
    assert.equal(slotWords({ ...taken, ...{ state: "AILING", stateText: "XID 79" } }, agent), "slot 0 of agent-1: experiment 12; not usable: XID 79");
    assert.equal(experimentOf("gc.7"), null);
    const known = { ...slot, container: { parent: "12.abc.1", trialId: 40, placedTime: new Date(2026, 10, 25, 14, 3, 9).toISOString() } };
    assert.equal(slotWords(known, agent, new Map([[12, "ada\u202e"]])), "slot 0 of agent-1: experiment 12, trial 40, of ada\u2400, since 2026-11-25 14:03:09".replace("\u2400", shown("\u202e")));
});
