import assert from "node:assert/strict";
import { test } from "node:test";
import { allowed, allowedSomewhere, RIGHTS, type Of } from "../../../src/state/may";

const LOOKS = ["VIEW_EXPERIMENT_METADATA"], WORKS = [...LOOKS, "CREATE_EXPERIMENT", "UPDATE_EXPERIMENT", "UPDATE_EXPERIMENT_METADATA"], MAKES = [...LOOKS, "CREATE_EXPERIMENT", "CREATE_WORKSPACE"];
const types = (names: string[]) => names.map((n) => `PERMISSION_TYPE_${n}`);
const mode = (everybody: string[], owner: string[], given: { permissions: string[]; in: number[] | null }[] = []) => ({
    everybody: types(everybody), owner: types([...everybody, ...owner]), workspaceOwner: types([...everybody, "UPDATE_WORKSPACE", "ASSIGN_ROLES"]),
    roles: given.map((g, i) => ({ roleId: i, name: "", scopeTypeMask: {}, permissions: types(g.permissions).map((id) => ({ id, name: "", scopeTypeMask: {} })) })),
    assignments: given.map((g, i) => ({ roleId: i, scopeWorkspaceIds: g.in ?? [], scopeCluster: g.in === null })),
}) as unknown as Parameters<typeof allowed>[0];
const me = { id: 7, admin: false }, mine: Of = { ownerId: 7, workspaceId: 1 }, theirs: Of = { ownerId: 8, workspaceId: 1 };
const OWN = ["UPDATE_EXPERIMENT", "UPDATE_EXPERIMENT_METADATA", "DELETE_EXPERIMENT", "UPDATE_WORKSPACE"];
const all = (s: Parameters<typeof allowed>[0], of: Of, who = me) => RIGHTS.filter((r) => allowed(s, who, r, of)).join(" ");

test("one's own may be changed, others' may not; an administrator may all", () => {
    const owner = mode(MAKES, OWN);
    assert.deepEqual([all(owner, mine), all(owner, theirs), all(owner, {}), all(owner, theirs, { id: 7, admin: true })],
        ["create operate edit delete found place", "create found", "create found", RIGHTS.join(" ")]);
    assert.equal(all(owner, { ownerId: 8, hostId: 7, workspaceId: 3 }), "create found place grant");
    assert.deepEqual(RIGHTS.filter((r) => allowedSomewhere(owner, me, r)), ["create", "operate", "edit", "delete", "found", "place"]);
});

test("a viewer looks; a role counts in its workspace, or everywhere", () => {
    const viewer = mode(LOOKS, OWN.slice(0, 2), [{ permissions: LOOKS, in: null }]), editor = mode(LOOKS, OWN.slice(0, 2), [{ permissions: [...WORKS, "DELETE_EXPERIMENT"], in: [1, 3] }]);
    assert.deepEqual([all(viewer, theirs), all(editor, theirs), all(editor, { ownerId: 8, workspaceId: 2 }), all(editor, {})], ["", "create operate edit delete", "", ""]);
    assert.deepEqual([allowedSomewhere(editor, me, "create"), allowedSomewhere(viewer, me, "create"), allowedSomewhere(editor, me, "cluster")], [true, false, false]);
    const rbac = { ...viewer, workspaceOwner: types([...LOOKS, "CREATE_EXPERIMENT", "UPDATE_WORKSPACE", "ASSIGN_ROLES"]) }; // who made a workspace adds to it, without a role
    assert.deepEqual([allowedSomewhere(rbac, { ...me, isHost: true }, "create"), allowedSomewhere(rbac, { ...me, isHost: true }, "delete"), allowedSomewhere(rbac, me, "create")], [true, false, false]);
    const head = mode(LOOKS, [], [{ permissions: ["ADMINISTRATE_USER"], in: null }]);
    assert.equal(all(head, theirs), RIGHTS.join(" "));
});
