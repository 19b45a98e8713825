/* What the reader may do, as the master says; whoever is not known yet may all: the master has the last word. */
import { signal } from "@preact/signals";
import { call, type Routes } from "../api/client";
import { me } from "./session";

/* The last one is of the whole cluster, as is making workspaces. */
export const RIGHTS = ["create", "operate", "edit", "delete", "found", "place", "grant", "cluster"] as const;
export type Right = (typeof RIGHTS)[number];
type Summary = Routes["GET /api/v1/permissions/summary"]["answer"];

const TYPES: Record<Right, string> = {
    create: "CREATE_EXPERIMENT", operate: "UPDATE_EXPERIMENT", edit: "UPDATE_EXPERIMENT_METADATA", delete: "DELETE_EXPERIMENT", found: "CREATE_WORKSPACE",
    place: "UPDATE_WORKSPACE", grant: "ASSIGN_ROLES", cluster: "ADMINISTRATE_USER",
};

/* Whose a thing is, who made the workspace that it is in, and which that is; nothing: the cluster. */
export interface Of { ownerId?: number; hostId?: number; workspaceId?: number }
/* isHost: has made a workspace that is there still. */
export interface Who { id: number; admin: boolean; isHost?: boolean }

const has = (types: readonly string[] | undefined, right: Right): boolean => (types ?? []).includes(`PERMISSION_TYPE_${TYPES[right]}`);

/* By roles, in the workspace; `isAnywhere`: in any. */
function byRole(s: Summary, right: Right, workspaceId: number | undefined, isAnywhere: boolean): boolean {
    return s.assignments.some((a) => (a.scopeCluster || (isAnywhere ? a.scopeWorkspaceIds.length > 0 : a.scopeWorkspaceIds.includes(workspaceId ?? 0)))
        && has(s.roles.find((r) => r.roleId === a.roleId)?.permissions.map((p) => p.id), right));
}

const isMaster = (s: Summary, who: Who): boolean => who.admin || byRole(s, "cluster", undefined, false);

export function allowed(s: Summary, who: Who, right: Right, of: Of = {}): boolean {
    return isMaster(s, who) || has(s.everybody, right) || byRole(s, right, of.workspaceId, false)
        || (of.ownerId === who.id && has(s.owner, right)) || (of.hostId === who.id && has(s.workspaceOwner, right));
}

/* Of some thing or other: what is the reader's counts, be there any or not. */
export function allowedSomewhere(s: Summary, who: Who, right: Right): boolean {
    return isMaster(s, who) || has(s.everybody, right) || has(s.owner, right) || byRole(s, right, undefined, true) || (!!who.isHost && has(s.workspaceOwner, right));
}

/* Of whom it is: another one who signs in begins unknown. */
const known = signal<{ id: number; summary: Summary; isHost: boolean } | null>(null);

export async function askRights(stop: AbortSignal): Promise<Summary> {
    const id = me.value?.id ?? 0;
    const [summary, { workspaces }] = await Promise.all([call("GET /api/v1/permissions/summary", { signal: stop }),
        call("GET /api/v1/workspaces", { query: { userIds: [id], limit: 1 }, signal: stop })]);
    known.value = { id, summary, isHost: workspaces.length > 0 };
    return summary;
}

/* The reader has made a workspace: what may be done there is not asked for first. */
export function becomeHost(): void {
    if (known.value) known.value = { ...known.value, isHost: true };
}

function mine(is: (s: Summary, who: Who) => boolean): boolean {
    const who = me.value, k = known.value;
    return !who || k?.id !== who.id || is(k.summary, { id: who.id, admin: who.admin, isHost: k.isHost });
}

export const may = (right: Right, of: Of = {}): boolean => mine((s, who) => allowed(s, who, right, of));
export const maySomewhere = (right: Right): boolean => mine((s, who) => allowedSomewhere(s, who, right));

/* Of an experiment and all that is its. */
export const ofExperiment = (e: { userId: number; workspaceId: number }): Of => ({ ownerId: e.userId, workspaceId: e.workspaceId });
