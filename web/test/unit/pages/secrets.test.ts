import assert from "node:assert/strict";
import { test } from "node:test";
import { configWithoutSecrets, secretsOf } from "../../../src/pages/experiment/secrets";

const config = (registry_auth: unknown) => ({ name: "x", environment: { image: "i", registry_auth } });

test("how to sign in to a registry is not shown, who signs in is", () => {
    const c = config({ username: "ada", password: "pw", auth: "pw-and-more", email: null, identitytoken: "" });
    assert.deepEqual(secretsOf(c), ["pw-and-more", "pw"]);
    assert.deepEqual(configWithoutSecrets(c), config({ username: "ada", password: "••••••", auth: "••••••", email: null, identitytoken: "" }));
    assert.equal(JSON.stringify(configWithoutSecrets(c)).includes("pw"), false);
});

test("what the master hides already is shown as it is", () => {
    const c = config({ password: "(hidden)", auth: "(hidden)" });
    assert.deepEqual(secretsOf(c), []);
    assert.deepEqual(configWithoutSecrets(c), c);
});

test("configurations without any, and hostile ones, stay as they are", () => {
    for (const c of [null, undefined, "x", [], {}, config(null), config("x"), config([1]), { environment: null }, { environment: { registry_auth: { password: 7 } } }]) {
        assert.deepEqual(secretsOf(c), []);
        assert.deepEqual(configWithoutSecrets(c), c);
    }
});
