import assert from "node:assert/strict";
import { test } from "node:test";
import { givable, Known } from "../../../src/pages/people/people_data";

test("what is known is asked again where its row changed, when it is old, and after it was forgotten", async () => {
    let now = 0, asked = 0;
    const known = new Known<number>(1000, () => now), ask = async () => ++asked, of = (numMembers: number) => known.of({ groupId: 1, numMembers }, ask);
    assert.deepEqual([await of(1), await of(1), await of(2), await of(1)], [1, 1, 2, 1]);
    now = 1000;
    assert.equal(await of(1), 3);
    known.forget();
    assert.equal(await of(1), 4);
    known.forget();
    let answer: (n: number) => void = () => undefined;
    const before = known.of({ groupId: 1, numMembers: 1 }, () => new Promise<number>((done) => { answer = done; }));
    known.forget(); // changed while it was asked
    answer(0);
    assert.deepEqual([await before, await of(1)], [0, 5]);
});

test("who may not give a role in the whole cluster is not offered it, nor other people's workspaces", () => {
    const role = (roleId: number, workspace: boolean) => ({ roleId, scopeTypeMask: { cluster: true, workspace } }) as never, space = (id: number) => ({ id, name: `w${id}`, userId: id });
    const now = { roles: [role(1, false), role(2, true)], workspaces: [space(1), space(2)] }, of = (...mine: (number | null)[]) => {
        const { roles, workspaces, everywhere } = givable(now, (id) => mine.includes(id));
        return [roles.map((r) => r.roleId).join(), workspaces.map((w) => w.id).join(), everywhere];
    };
    assert.deepEqual([of(null, 1, 2), of(2), of()], [["1,2", "1,2", true], ["2", "2", false], ["2", "", false]]);
});
