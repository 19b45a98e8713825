/* The master: whether it is ready, what it was told, who did what, and whose slots are limited. */
import { ApiError, call, stream, type Messages } from "../../api/client";
import type { Line } from "../../ui/log/loglines";
import type { Job } from "../cluster/queue_data";

export const LIVE_MS = 3000, SELDOM_MS = 60_000, LINES = 1000;
const ENTRIES = 200, ENTRIES_MOST = 10_000; // as the master takes it

/* Its own word: "" when it is ready. */
export async function askReady(signal: AbortSignal): Promise<string> {
    try {
        await call("GET /readyz", { signal });
        return "";
    } catch (e) {
        if (!(e instanceof ApiError) || e.status === 0) throw e;
        return e.message;
    }
}

type Entry = Messages["log.v1.LogEntry"];

/* Its newest lines; it keeps no more than its own log has of them. */
export async function askLines(signal: AbortSignal): Promise<Line[]> {
    const out: Line[] = [];
    for await (const { logEntry: e } of stream<{ logEntry: Entry }>("GET /api/v1/master/logs", { query: { offset: -LINES }, signal }))
        out.push({ id: e.id, time: e.timestamp, level: e.level.replace("LOG_LEVEL_", ""), rank: null, source: "", text: e.message });
    return out;
}

/* One more than is shown is asked for: the master does not count them all. */
export const entriesAsked = (isWhole: boolean): number => (isWhole ? ENTRIES_MOST : ENTRIES + 1);

/* The newest entries; `cut`: how they are told to be not all of them, "" where they are. */
export function newestEntries<E>(entries: E[], isWhole: boolean): { entries: E[]; cut: string } {
    const most = isWhole ? ENTRIES_MOST : ENTRIES, isCut = isWhole ? entries.length >= most : entries.length > most;
    return { entries: entries.slice(0, most), cut: isCut ? `The newest ${most.toLocaleString("en")} are shown.` : "" };
}

export interface Quota { user: string; pool: string; slots: number; held: number }

/* Each quota of the master's settings, with what is held of it now. "*" is for everybody without one of their own. */
export function quotasOf(config: Record<string, unknown>, jobs: readonly Pick<Job, "username" | "resourcePool" | "allocatedSlots">[]): Quota[] {
    const list = Array.isArray(config["quotas"]) ? config["quotas"] as Record<string, unknown>[] : [];
    const rows = list.map((q) => ({ user: String(q["user"] ?? ""), pool: String(q["pool"] ?? ""), slots: Number(q["slots"] ?? 0) }));
    const own = new Set(rows.map((r) => `${r.user} ${r.pool}`));
    const held = (r: { user: string; pool: string }, name: string) => jobs.filter((j) => j.username === name && (!r.pool || j.resourcePool === r.pool)).reduce((n, j) => n + j.allocatedSlots, 0);
    return rows.flatMap((r) => {
        if (r.user !== "*") return [{ ...r, held: held(r, r.user) }];
        const others = [...new Set(jobs.map((j) => j.username))].filter((name) => !own.has(`${name} ${r.pool}`));
        return [{ ...r, user: "everybody else", held: 0 }, ...others.map((name) => ({ ...r, user: name, held: held(r, name) })).filter((q) => q.held > 0)];
    });
}
