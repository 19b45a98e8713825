/* Models of the registry and their versions, as they are asked of the master. */
import { call, type Messages } from "../../api/client";
import type { Of } from "../../state/may";
import { askPages, limitOf, partOf, type Part } from "../../state/part";

export type Model = Messages["model.v1.Model"];
export type Workspace = Messages["workspace.v1.Workspace"];
export type Version = Messages["ListedModelVersion"];
export const LIVE_MS = 5000;

export const ofModel = (m: Model): Of => ({ ownerId: m.userId, workspaceId: m.workspaceId });
export const modelAddress = (name: string): string => `/det/models/${encodeURIComponent(name)}`;
export const labelsOf = (text: string): string[] => [...new Set(text.split("\n").map((l) => l.trim()).filter(Boolean))];

const SORTS = { changed: "SORT_BY_LAST_UPDATED_TIME", made: "SORT_BY_CREATION_TIME", name: "SORT_BY_NAME", description: "SORT_BY_DESCRIPTION", versions: "SORT_BY_NUM_VERSIONS", workspace: "SORT_BY_WORKSPACE" } as const;
export type Sort = keyof typeof SORTS;
export const SORT_NAMES = Object.keys(SORTS) as Sort[];
export interface ModelsView { search: string; description: string; labels: string[]; owners: number[]; workspaces: number[]; archived: boolean; sort: Sort; isDown: boolean }

const idsOf = (all: string[]): number[] => all.flatMap((t) => t.split(",")).map(Number).filter((n) => Number.isSafeInteger(n) && n > 0);

/* What the address asks for; Determined's keys (name, tags, users, workspace, sortKey, sortDesc) mean what they did. */
export function modelsView(q: URLSearchParams): ModelsView {
    const former = SORT_NAMES.find((s) => SORTS[s] === q.get("sortKey")), sort = SORT_NAMES.find((s) => s === q.get("sort")) ?? former ?? "changed", down = q.get("sortDesc");
    return { search: q.get("search") ?? q.get("name") ?? "", description: q.get("description") ?? "", labels: [...q.getAll("label"), ...q.getAll("tags")],
        owners: idsOf([...q.getAll("owner"), ...q.getAll("users")]), workspaces: idsOf(q.getAll("workspace")), archived: ["too", "true"].includes(q.get("archived") ?? ""),
        sort, isDown: down === null ? sort === "changed" || sort === "made" || sort === "versions" : down === "true" };
}
export const MODELS_VIEW: ModelsView = modelsView(new URLSearchParams());

/* What of it the page has no field for, in words. */
export function alsoAsked(v: ModelsView): string[] {
    return [...(v.description ? [`described as ${v.description}`] : []), ...v.labels.map((l) => `labelled ${l}`), ...(v.owners.length ? [`of ${v.owners.map((id) => `user ${id}`).join(" or ")}`] : []),
        ...(v.workspaces.length ? [`in ${v.workspaces.map((id) => `workspace ${id}`).join(" or ")}`] : [])];
}

export async function askModels(v: ModelsView, isWhole: boolean, signal: AbortSignal): Promise<Part<Model>> {
    const query = { name: v.search, description: v.description, labels: v.labels, userIds: v.owners, workspaceIds: v.workspaces, ...(v.archived ? {} : { archived: false }),
        sortBy: SORTS[v.sort], orderBy: v.isDown ? "ORDER_BY_DESC" : "ORDER_BY_ASC" } as const;
    return askPages(isWhole, async (page) => {
        const { models, pagination } = await call("GET /api/v1/models", { query: { ...query, ...page }, signal });
        return partOf(models, pagination);
    });
}

/* `host`: the workspace that it is in. */
export async function askVersions(name: string, isWhole: boolean, signal: AbortSignal): Promise<{ model: Model; versions: Part<Version>; host: Workspace }> {
    const r = await call("GET /api/v1/models/{modelName}/versions", { path: { modelName: name }, query: { sortBy: "SORT_BY_VERSION", orderBy: "ORDER_BY_DESC", limit: limitOf(isWhole) }, signal });
    const { workspace } = await call("GET /api/v1/workspaces/{id}", { path: { id: r.model.workspaceId }, signal });
    return { model: r.model, versions: partOf(r.modelVersions, r.pagination), host: workspace };
}

/* What loads a version in a program. */
export function loadText(name: string, version: number): string {
    return `from determined.experimental import client\n\nmodel = client.get_model(${JSON.stringify(name)})\npath = model.get_version(${version}).checkpoint.download()\n`;
}
