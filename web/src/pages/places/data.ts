/* Workspaces and the projects in them, as they are asked of the master. */
import { call, type Messages } from "../../api/client";
import type { Of } from "../../state/may";
import { limitOf, partOf, type Part } from "../../state/part";

export type Workspace = Messages["workspace.v1.Workspace"];
export type Project = Messages["project.v1.Project"];
export const LIVE_MS = 5000;

export const ofWorkspace = (w: Workspace): Of => ({ ownerId: w.userId, hostId: w.userId, workspaceId: w.id });
/* `host`: the workspace that it is in. */
export const ofProject = (p: Project, host: Workspace): Of => ({ ownerId: p.userId, hostId: host.userId, workspaceId: host.id });

export async function askWorkspaces(isWhole: boolean, signal: AbortSignal): Promise<Part<Workspace>> {
    const r = await call("GET /api/v1/workspaces", { query: { sortBy: "SORT_BY_NAME", limit: limitOf(isWhole) }, signal });
    return partOf(r.workspaces, r.pagination);
}

export async function askProjects(workspace: string | number, isWhole: boolean, signal: AbortSignal): Promise<Part<Project>> {
    const r = await call("GET /api/v1/workspaces/{id}/projects", { path: { id: workspace }, query: { sortBy: "SORT_BY_NAME", limit: limitOf(isWhole) }, signal });
    return partOf(r.projects, r.pagination);
}

/* All that an experiment could be moved to: neither archived nor in what is. */
export async function askTargets(signal: AbortSignal): Promise<Project[]> {
    const open = (await askWorkspaces(true, signal)).rows.filter((w) => !w.archived);
    return (await Promise.all(open.map((w) => askProjects(w.id, true, signal)))).flatMap((p) => p.rows).filter((p) => !p.archived);
}
