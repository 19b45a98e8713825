import assert from "node:assert/strict";
import { test } from "node:test";
import { hostOf, triggerText } from "../../../src/pages/webhooks/webhooks";

test("a trigger in words, whatever it is", () => {
    const state = (s: unknown) => triggerText({ triggerType: "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", condition: { state: s } as never });
    assert.deepEqual(["ERROR", "toString", undefined].map(state), ["an experiment is failed", "an experiment is toString", "an experiment is "]);
    assert.equal(triggerText({ triggerType: "TRIGGER_TYPE_TASK_LOG", condition: { regex: "<b>.*" } }), "a line of a log has <b>.*");
});

test("of a URL only its host is said", () => {
    assert.deepEqual([hostOf("https://hooks.example.com:8443/T0/secret?x"), hostOf("?")], ["hooks.example.com:8443", "a receiver"]);
});
