/* Slot use over days or months of UTC: what the address asks for, and what of it is shown. */
import type { Messages } from "../../api/client";

export type Entry = Messages["master.v1.ResourceAllocationAggregatedEntry"];
export const WAYS = { pool: "byResourcePool", workspace: "byWorkspace", user: "byUsername", label: "byExperimentLabel" } as const;
export type Way = keyof typeof WAYS;
export interface Asked { groupBy: "day" | "month"; after: string; before: string; by: Way }
export interface Share { key: string; total: number; hours: number[] }

const DAYS = 14, MONTHS = 6, KEYS = 9, HOUR_S = 3600;
const FORM = { day: /^\d{4}-\d\d-\d\d$/, month: /^\d{4}-\d\d$/ };

/* Determined's own keys; the last two weeks, or six months, where the address has no days of that form. */
export function askedOf(query: URLSearchParams, now: Date): Asked {
    const groupBy = query.get("groupBy") === "month" ? "month" : "day", length = groupBy === "day" ? 10 : 7;
    const from = groupBy === "day" ? Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() - DAYS + 1) : Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - MONTHS + 1, 1);
    const at = (key: string, fallback: Date) => { const v = query.get(key) ?? ""; return FORM[groupBy].test(v) ? v : fallback.toISOString().slice(0, length); };
    const by = query.get("by") ?? "";
    return { groupBy, after: at("after", new Date(from)), before: at("before", now), by: Object.hasOwn(WAYS, by) ? by as Way : "pool" };
}

/* Slot hours of each name in each period, the largest first; what is beyond nine is one. */
export function sharesOf(entries: readonly Entry[], by: Way): Share[] {
    const of = (e: Entry) => e[WAYS[by]] as Record<string, number>;
    const all = [...new Set(entries.flatMap((e) => Object.keys(of(e))))].map((key) => {
        const hours = entries.map((e) => (Object.hasOwn(of(e), key) ? of(e)[key]! / HOUR_S : 0));
        return { key, hours, total: hours.reduce((a, b) => a + b, 0) };
    }).sort((a, b) => b.total - a.total || a.key.localeCompare(b.key, "en"));
    if (all.length <= KEYS + 1) return all;
    const rest = all.slice(KEYS);
    return [...all.slice(0, KEYS), { key: `${rest.length} others`, total: rest.reduce((n, s) => n + s.total, 0), hours: entries.map((_, i) => rest.reduce((n, s) => n + s.hours[i]!, 0)) }];
}
