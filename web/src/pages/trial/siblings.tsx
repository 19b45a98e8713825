/* The trials before and after one in its search, by their numbers. */
import { call } from "../../api/client";
import { useLive } from "../../state/live";
import { query } from "../../state/router";
import type { Trial } from "../experiment/data";

const AGAIN_MS = 10_000; // a search that goes on makes more
const TRIES_MOST = 64; // of a list that changes meanwhile

export interface Siblings { place: number; total: number; before: number | null; after: number | null }
type AskThree = (offset: number) => Promise<{ ids: number[]; total: number }>;

/* Halves what is left with each request, three trials in each; null: it is not there. */
export async function findSiblings(id: number, ask: AskThree): Promise<Siblings | null> {
    for (let lo = 0, hi = Infinity, mid = 0, left = TRIES_MOST; lo <= hi && left--; mid = Math.floor((lo + hi) / 2)) {
        const from = Math.max(0, mid - 1), { ids, total } = await ask(from), i = ids.indexOf(id), isCut = i === ids.length - 1 && from + i + 1 < total;
        if (i >= 0 && (i > 0 || from === 0) && !isCut) return { place: from + i + 1, total, before: ids[i - 1] ?? null, after: ids[i + 1] ?? null };
        hi = Math.min(hi, total - 1);
        if (i >= 0) lo = hi = from + i;
        else if (!ids.length || ids[0]! > id) hi = from - 1;
        else lo = from + ids.length;
    }
    return null;
}

async function askSiblings(trial: Pick<Trial, "id" | "experimentId">, signal: AbortSignal): Promise<Siblings | null> {
    return findSiblings(trial.id, async (offset) => {
        const { trials, pagination } = await call("GET /api/v1/experiments/{experimentId}/trials",
            { path: { experimentId: trial.experimentId }, query: { sortBy: "SORT_BY_ID", orderBy: "ORDER_BY_ASC", offset, limit: 3 }, signal });
        return { ids: trials.map((t) => t.id), total: pagination.total };
    });
}

/* To the neighbours with the same metrics and axes; of a search of one there is nothing to say. */
export function SiblingLinks({ trial, ended }: { trial: Trial; ended: boolean }) {
    const s = useLive(`siblings of ${trial.id}`, String(ended), (signal) => askSiblings(trial, signal), () => (ended ? null : AGAIN_MS)).data;
    if (!s || s.total < 2) return null;
    const view = new URLSearchParams(query.value);
    for (const key of ["z", "at"]) view.delete(key); // a part of this one
    const to = (id: number) => `/det/trials/${id}${view.size ? `?${view}` : ""}`;
    return <nav class="row" aria-label="Trials of the search">{s.before !== null && <a href={to(s.before)} rel="prev">‹ trial {s.before}</a>}
        <span class="soft">{s.place.toLocaleString("en")} of {s.total.toLocaleString("en")}</span>{s.after !== null && <a href={to(s.after)} rel="next">trial {s.after} ›</a>}</nav>;
}
