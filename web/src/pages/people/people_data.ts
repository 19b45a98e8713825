/* Users, groups and roles, as they are asked of the master. */
import { call, type Messages } from "../../api/client";
import { askPages, limitOf, partOf, type Part } from "../../state/part";

export type User = Messages["user.v1.User"];
export type Group = Messages["group.v1.GroupDetails"];
export type Role = Messages["rbac.v1.Role"];
export const LIVE_MS = 5000;
const ROLES_MOST = 500; // the master gives no more at once

export const calledBy = (u: User): string => (u.displayName ? `${u.username} (${u.displayName})` : u.username);

export async function askUsers(isWhole: boolean, signal: AbortSignal): Promise<Part<User>> {
    const r = await call("GET /api/v1/users", { query: { sortBy: "SORT_BY_USER_NAME", orderBy: "ORDER_BY_ASC", limit: limitOf(isWhole) }, signal });
    return partOf(r.users ?? [], r.pagination);
}

/* Who is in a group takes a request each: it is asked again where the list shows that it changed, and now and then. */
export class Known<T> {
    private readonly all = new Map<string, { at: number; got: T }>();
    private generation = 0; // what was asked before a change may tell of the time before it

    constructor(private readonly ageMs: number, private readonly now: () => number = Date.now) {}

    async of(row: object, ask: () => Promise<T>): Promise<T> {
        const key = JSON.stringify(row), had = this.all.get(key);
        if (had && this.now() - had.at < this.ageMs) return had.got;
        const generation = this.generation, got = await ask();
        if (generation === this.generation) this.all.set(key, { at: this.now(), got });
        return got;
    }

    forget(): void {
        this.generation++;
        this.all.clear();
    }
}

const MEMBERS_MS = 60_000;
const known = new Known<Group>(MEMBERS_MS);

/* Each group with who is in it. */
export async function askGroups(isWhole: boolean, signal: AbortSignal): Promise<Part<Group>> {
    const { rows, total } = await askPages(isWhole, async (body) => {
        const { groups, pagination } = await call("POST /api/v1/groups/search", { body, signal });
        return partOf(groups.map(({ group, numMembers }) => ({ groupId: group.groupId, name: group.name, numMembers })), pagination);
    });
    return { rows: await Promise.all(rows.map((row) => known.of(row, async () => (await call("GET /api/v1/groups/{groupId}", { path: { groupId: row.groupId }, signal })).group))), total };
}

/* After one was changed here. */
export const forgetGroups = (): void => known.forget();

/* Who has which role where. workspace null: in the whole cluster. */
export interface Grant { role: Role; who: string; userId: number; groupId: number; workspace: number | null; where: string }
export interface RolesNow {
    roles: Role[]; grants: Grant[]; users: User[]; groups: Group[]; workspaces: { id: number; name: string; userId: number }[];
    /* Of which not all are known here. */
    cut: { one: string; part: Part<unknown> }[];
}

/* What may be given by whom: some roles only where the whole cluster is, and the others where the reader may. `mayIn`: null is the cluster. */
export function givable(now: Pick<RolesNow, "roles" | "workspaces">, mayIn: (id: number | null) => boolean): { roles: Role[]; workspaces: RolesNow["workspaces"]; everywhere: boolean } {
    const everywhere = mayIn(null);
    return { everywhere, roles: now.roles.filter((r) => everywhere || r.scopeTypeMask.workspace), workspaces: now.workspaces.filter((w) => mayIn(w.id)) };
}

type RoleRow = Messages["rbac.v1.RoleWithAssignments"];

/* One of the lists of a role, in words. */
export function grantsOf(row: RoleRow, now: Pick<RolesNow, "users" | "groups" | "workspaces">): Grant[] {
    const place = (id: number | null): string => (id === null || id === 0 ? "the whole cluster" : now.workspaces.find((w) => w.id === id)?.name ?? `workspace ${id}`);
    const of = (who: string, userId: number, groupId: number, at: number | null): Grant =>
        ({ role: row.role, who, userId, groupId, workspace: at || null, where: place(at) });
    return [
        ...row.userRoleAssignments.map((a) => of(now.users.find((u) => u.id === a.userId)?.username ?? `user ${a.userId}`, a.userId, 0, a.roleAssignment.scopeWorkspaceId)),
        ...row.groupRoleAssignments.map((a) => of(`group ${now.groups.find((g) => g.groupId === a.groupId)?.name ?? a.groupId}`, 0, a.groupId, a.roleAssignment.scopeWorkspaceId)),
    ];
}

export async function askRoles(isWhole: boolean, signal: AbortSignal): Promise<RolesNow> {
    const [{ roles }, users, groups, places] = await Promise.all([call("POST /api/v1/roles/search", { body: { limit: ROLES_MOST }, signal }), askUsers(isWhole, signal), askGroups(isWhole, signal),
        call("GET /api/v1/workspaces", { query: { limit: limitOf(isWhole) }, signal })]);
    const rows = (await call("POST /api/v1/roles/search/by-ids", { body: { roleIds: roles.map((r) => r.roleId) }, signal })).roles;
    const known = { users: users.rows, groups: groups.rows, workspaces: places.workspaces };
    const cut = [{ one: "user", part: users }, { one: "group", part: groups }, { one: "workspace", part: partOf(places.workspaces, places.pagination) }];
    return { ...known, roles, grants: rows.flatMap((r) => grantsOf(r, known)), cut };
}

/* As one assignment of a role is sent, to give it or to take it away. */
export function grantBody(g: { roleId: number; userId: number; groupId: number; workspace: number | null }): Messages["AssignRolesRequest"] {
    const roleAssignment = { role: { roleId: g.roleId }, ...(g.workspace ? { scopeWorkspaceId: g.workspace } : { scopeCluster: true }) };
    return { userRoleAssignments: g.userId ? [{ userId: g.userId, roleAssignment }] : [], groupRoleAssignments: g.groupId ? [{ groupId: g.groupId, roleAssignment }] : [] };
}
