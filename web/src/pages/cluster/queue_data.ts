/* The queue of every pool; where a job in it may go, and what the master is told. */
import { call, type Messages } from "../../api/client";

export type Job = Messages["job.v1.Job"];
export type Pool = Messages["resourcepool.v1.ResourcePool"];
export type Move = Messages["job.v1.QueueControl"];

const JOBS_MOST = 100; // of a pool

export interface Queues { pools: Pool[]; jobs: Job[]; total: number }

/* The pools, and the jobs of each that has any: a queue is asked for by its pool. */
export async function askQueues(signal: AbortSignal): Promise<Queues> {
    const pools = (await call("GET /api/v1/resource-pools", { signal })).resourcePools;
    const busy = pools.filter((p) => !p.stats || p.stats.queuedCount + p.stats.scheduledCount + (p.stats.pausedCount ?? 0) > 0);
    const all = await Promise.all(busy.map((p) => call("GET /api/v1/job-queues-v2", { query: { resourcePool: p.name, limit: JOBS_MOST }, signal })));
    return { pools, jobs: all.flatMap((q) => q.jobs.map((j) => j.full)).filter((j): j is Job => Boolean(j)),
        total: all.reduce((n, q) => n + q.pagination.total, 0) };
}

/* What is served next of those that wait in a pool; null: nothing waits. */
export function nextOf(jobs: readonly Job[], pool: string): Job | null {
    const waiting = jobs.filter((j) => j.resourcePool === pool && !j.isPaused && j.summary?.state === "STATE_QUEUED");
    return waiting.reduce<Job | null>((first, j) => (first && first.summary!.jobsAhead <= j.summary!.jobsAhead ? first : j), null);
}

/* Pools whose scheduler keeps an order that people can change. */
export function orderedPools(pools: readonly Pick<Pool, "name" | "schedulerType">[]): Set<string> {
    return new Set(pools.filter((p) => p.schedulerType === "SCHEDULER_TYPE_PRIORITY").map((p) => p.name));
}

function lineOf(jobs: readonly Job[], id: string): Job[] {
    const pool = jobs.find((j) => j.jobId === id)?.resourcePool;
    return jobs.filter((j) => j.resourcePool === pool);
}

/* Whether there is another place for it. */
export function canMove(jobs: readonly Job[], j: Job, ordered: ReadonlySet<string>): boolean {
    return ordered.has(j.resourcePool) && lineOf(jobs, j.jobId).length > 1;
}

/* To the place that another job has; that one makes room. null: it is there, or that is no place for it. */
export function moveTo(jobs: readonly Job[], id: string, target: string): Move | null {
    const line = lineOf(jobs, id).map((j) => j.jobId), from = line.indexOf(id), to = line.indexOf(target);
    if (from < 0 || to < 0 || from === to) return null;
    return to < from ? { jobId: id, aheadOf: target } : { jobId: id, behindOf: target };
}

/* One place up (-1) or down (1). */
export function moveBy(jobs: readonly Job[], id: string, by: -1 | 1): Move | null {
    const line = lineOf(jobs, id), next = line[line.findIndex((j) => j.jobId === id) + by];
    return next ? moveTo(jobs, id, next.jobId) : null;
}

/* What a move did; a job takes the priority of the one that it stands beside. */
export function moved(jobs: readonly Job[], move: Move, name: (j: Job) => string): string {
    const job = jobs.find((j) => j.jobId === move.jobId), beside = jobs.find((j) => j.jobId === (move.aheadOf ?? move.behindOf));
    if (!job || !beside) return "";
    const priority = job.priority === beside.priority ? "" : `, with its priority ${beside.priority}`;
    return `${name(job)} is ${move.aheadOf ? "ahead of" : "behind"} ${name(beside)} now${priority}.`;
}

export interface Standing { priority: number; weight: number; pool: string }

/* One update for each thing that was changed, as the master takes them; the pool last: what counts there may be another thing. */
export function standingChanges(jobId: string, was: Standing, is: Standing): Move[] {
    return [
        ...(is.priority !== was.priority ? [{ jobId, priority: is.priority }] : []), ...(is.weight !== was.weight ? [{ jobId, weight: is.weight }] : []),
        ...(is.pool !== was.pool ? [{ jobId, resourcePool: is.pool }] : []),
    ];
}
