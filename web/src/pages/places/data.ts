/* Workspaces and the projects in them, as they are asked of the master. */
import { call, type Messages } from "../../api/client";

export type Workspace = Messages["workspace.v1.Workspace"];
export type Project = Messages["project.v1.Project"];
export const LIVE_MS = 5000, MOST = 500;

export async function askWorkspaces(signal: AbortSignal): Promise<Workspace[]> {
    return (await call("GET /api/v1/workspaces", { query: { sortBy: "SORT_BY_NAME", limit: MOST }, signal })).workspaces;
}

export async function askProjects(workspace: string | number, signal: AbortSignal): Promise<Project[]> {
    return (await call("GET /api/v1/workspaces/{id}/projects", { path: { id: workspace }, query: { sortBy: "SORT_BY_NAME", limit: MOST }, signal })).projects;
}

/* All that an experiment could be moved to: neither archived nor in what is. */
export async function askTargets(signal: AbortSignal): Promise<Project[]> {
    const open = (await askWorkspaces(signal)).filter((w) => !w.archived);
    return (await Promise.all(open.map((w) => askProjects(w.id, signal)))).flat().filter((p) => !p.archived);
}
