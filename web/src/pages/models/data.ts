/* Models of the registry and their versions, as they are asked of the master. */
import { call, type Messages } from "../../api/client";
import type { Of } from "../../state/may";
import { askPages, limitOf, partOf, type Part } from "../../state/part";

export type Model = Messages["model.v1.Model"];
export type Version = Messages["ListedModelVersion"];
export const LIVE_MS = 5000;

export const ofModel = (m: Model): Of => ({ ownerId: m.userId, workspaceId: m.workspaceId });
export const modelAddress = (name: string): string => `/det/models/${encodeURIComponent(name)}`;
export const labelsOf = (text: string): string[] => [...new Set(text.split("\n").map((l) => l.trim()).filter(Boolean))];

export async function askModels(search: string, archived: boolean, isWhole: boolean, signal: AbortSignal): Promise<Part<Model>> {
    const query = { ...(search ? { name: search } : {}), ...(archived ? {} : { archived: false }), sortBy: "SORT_BY_LAST_UPDATED_TIME", orderBy: "ORDER_BY_DESC" } as const;
    return askPages(isWhole, async (page) => {
        const { models, pagination } = await call("GET /api/v1/models", { query: { ...query, ...page }, signal });
        return partOf(models, pagination);
    });
}

export async function askVersions(name: string, isWhole: boolean, signal: AbortSignal): Promise<{ model: Model; versions: Part<Version> }> {
    const r = await call("GET /api/v1/models/{modelName}/versions", { path: { modelName: name }, query: { sortBy: "SORT_BY_VERSION", orderBy: "ORDER_BY_DESC", limit: limitOf(isWhole) }, signal });
    return { model: r.model, versions: partOf(r.modelVersions, r.pagination) };
}

/* What loads a version in a program. */
export function loadText(name: string, version: number): string {
    return `from determined.experimental import client\n\nmodel = client.get_model(${JSON.stringify(name)})\npath = model.get_version(${version}).checkpoint.download()\n`;
}
