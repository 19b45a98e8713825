import assert from "node:assert/strict";
import { test } from "node:test";
import { hiddenText } from "../../../src/pages/experiment/hide";

const text = (...auth: string[]): string => ["name: a word", "environment:", "  registry_auth: # of ours", ...auth.map((l) => "    " + l), "entrypoint: x", ""].join("\n");

test("how to sign in to a registry is hidden however it is written, and nothing else", () => {
    for (const [written, seen] of [["password: swordfish", "password: ••••••"], ["password: 'swordfish' # swordfish", "password: '••••••' # ••••••"],
        ['auth: "sword\\u0066ish"', 'auth: "••••••"'], ["password: w", "password: ••••••"], ["{password: w, username: a}", "{password: ••••••, username: a}"],
        ["identitytoken: &t swordfish", "identitytoken: &t ••••••"], ["password: !!str swordfish", "password: !!str ••••••"]] as const)
        assert.equal(hiddenText(text(written)), text(seen), written);
    assert.equal(hiddenText(text("password: |", "  sword", "  fish", "username: a")), text("password: ••••••", "username: a"));
    assert.equal(hiddenText(text("password: pw", "auth: pw-and-more")), text("password: ••••••", "auth: ••••••"));
    assert.equal(hiddenText('{"environment":{"registry_auth":{"password":"a\\"b"}}}'), '{"environment":{"registry_auth":{"password":"••••••"}}}');
});

test("aliases and merged maps are followed", () => {
    assert.equal(hiddenText("x: &p swordfish\nenvironment:\n  registry_auth:\n    password: *p\n"), "x: &p ••••••\nenvironment:\n  registry_auth:\n    password: *p\n");
    assert.equal(hiddenText("x: &a\n  password: swordfish\nenvironment:\n  registry_auth:\n    <<: *a\n"), "x: &a\n  password: ••••••\nenvironment:\n  registry_auth:\n    <<: *a\n");
});

test("what has none is whole, as where a template has it; what cannot be read is not shown", () => {
    for (const t of ["", "name: x\n", "environment:\n  registry_auth:\n    username: a\n", "- 1\n"]) assert.equal(hiddenText(t), t);
    for (const t of ["a: [", "a: 1\n---\nb: 2\n", "%: : {"]) assert.equal(hiddenText(t), null, t);
});
