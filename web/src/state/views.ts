/* Addresses with a name, which the master keeps: a view is what is seen, its owner's alone or shown in a workspace. */
import { signal } from "@preact/signals";
import { call, type Messages } from "../api/client";
import { askPages, limitOf, partOf } from "./part";

export type View = Messages["View"];
export interface Views { own: View[]; shown: View[]; more: number }
/* What is told of one that is saved: 0 is no workspace. */
export interface Words { name?: string; address?: string; workspaceId?: number }

const HERE = "http://here";
/* Own ones, those of others, and how many of the latter are not listed. */
export const views = signal<Views>({ own: [], shown: [], more: 0 });
/* Whether all of them are asked for. */
let areAll = false;

/* Only pages of ours: nobody is led elsewhere by what is stored, nor in a circle. */
export function isOurs(address: string): boolean {
    if (!/^\/det\/(?!\/)/.test(address)) return false;
    const at = new URL(address, HERE); // as the browser will read it, ".." and all
    return at.origin === HERE && /^\/det\/(?!\/|views\/)/.test(at.pathname);
}

export function viewsOf(list: View[], owner: number | undefined, total = list.length): Views {
    const ours = list.filter((v) => isOurs(v.address));
    return { own: ours.filter((v) => v.userId === owner), shown: ours.filter((v) => v.userId !== owner), more: Math.max(0, total - list.length) };
}

/* `all`: from now on none is left out. */
export async function readViews(owner: number | undefined, all = areAll): Promise<void> {
    areAll = all;
    const { rows, total } = await askPages(all, async (query) => {
        const r = await call("GET /api/v1/views", { query });
        return partOf(r.views, r.pagination);
    });
    views.value = viewsOf(rows, owner, total);
}

/* What differs: a place that stays is not asked for again, as one may have lost it meanwhile. */
export function changesOf(v: View, words: Words): Words {
    return Object.fromEntries(Object.entries(words).filter(([key, value]) => value !== v[key as keyof Words]));
}

export const ownNamed = (name: string): View | undefined => views.value.own.find((v) => v.name === name.trim());

/* One's own of the same name is replaced. */
export function saveView(words: Required<Words>): Promise<{ view: View }> {
    const same = ownNamed(words.name);
    return same ? changeView(same.id, changesOf(same, words)) : call("POST /api/v1/views", { body: words });
}

export const changeView = (viewId: number, words: Words): Promise<{ view: View }> => call("PATCH /api/v1/views/{viewId}", { path: { viewId }, body: words });
export const deleteView = (viewId: number): Promise<unknown> => call("DELETE /api/v1/views/{viewId}", { path: { viewId } });
export const readView = async (viewId: string, signal: AbortSignal): Promise<View> => (await call("GET /api/v1/views/{viewId}", { path: { viewId }, signal })).view;

/* Where a view can be shown. */
export async function readPlaces(): Promise<{ id: number; name: string }[]> {
    return (await call("GET /api/v1/workspaces", { query: { sortBy: "SORT_BY_NAME", limit: limitOf(true) } })).workspaces.filter((w) => !w.archived);
}

/* The address of a view, which is short, whatever it holds. */
export const linkOf = (v: View): string => `/det/views/${v.id}`;
