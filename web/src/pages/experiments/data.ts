/* What the list of experiments asks of the master: a stretch of rows, all that match, and actions on many. */
import { ApiError, call, type Messages, type Routes } from "../../api/client";
import { OF_ACTIVE, type Column, type ListView, type StateGroup } from "../../state/list_address";
import type { Right } from "../../state/may";
import { bare } from "../../ui/state";
import type { Experiment } from "../experiment/data";
import { searches } from "./hp";
import { formset, search, sortText } from "./search";
import { asked } from "../../state/filter_tree";

export const VERBS = ["pause", "activate", "cancel", "kill", "archive", "unarchive", "move", "delete"] as const;
export type Verb = (typeof VERBS)[number];
export const RIGHT_OF: Record<Verb, Right> = { pause: "operate", activate: "operate", cancel: "operate", kill: "operate", archive: "edit", unarchive: "edit", move: "delete", delete: "delete" };
export type Outcome = Messages["ExperimentActionResult"];
type State = Messages["experiment.v1.State"];
type Query = NonNullable<Routes["GET /api/v1/experiments"]["query"]>;
type SortBy = Messages["GetExperimentsRequest.SortBy"];

const STATES: Record<StateGroup, State[]> = {
    active: ["STATE_ACTIVE"], queued: ["STATE_QUEUED"], pulling: ["STATE_PULLING"], starting: ["STATE_STARTING"], running: ["STATE_RUNNING"], paused: ["STATE_PAUSED"], completed: ["STATE_COMPLETED"], canceled: ["STATE_CANCELED"],
    failed: ["STATE_ERROR"],
    stopping: ["STATE_STOPPING_COMPLETED", "STATE_STOPPING_CANCELED", "STATE_STOPPING_ERROR", "STATE_STOPPING_KILLED"],
    deleting: ["STATE_DELETING", "STATE_DELETE_FAILED"],
};
const SORTS: Partial<Record<Column, SortBy>> = {
    id: "SORT_BY_ID", name: "SORT_BY_NAME", state: "SORT_BY_STATE", progress: "SORT_BY_PROGRESS", trials: "SORT_BY_NUM_TRIALS",
    best: "SORT_BY_SEARCHER_METRIC_VAL", owner: "SORT_BY_USER", pool: "SORT_BY_RESOURCE_POOL", started: "SORT_BY_START_TIME",
    ended: "SORT_BY_END_TIME", checkpoints: "SORT_BY_CHECKPOINT_COUNT", size: "SORT_BY_CHECKPOINT_SIZE", description: "SORT_BY_DESCRIPTION",
    project: "SORT_BY_PROJECT_ID", forked: "SORT_BY_FORKED_FROM",
};
const ALL_PAGE = 1000; // rows of one request where all are wanted
const IDS_PAGE = 100; // ids that one address holds
const ACT_PAGE = 200; // experiments of one request that acts, so that progress shows

export function filterOf(v: ListView): Query {
    return {
        name: v.search, states: v.states.flatMap((s) => STATES[s]), userIds: v.owners, labels: v.labels,
        ...(v.archived === "too" ? {} : { archived: v.archived === "only" }),
    };
}

/* By its one key, where GetExperiments can; else null. */
function orderOf(v: ListView): Query | null {
    const key = v.sort[0]!, sortBy = SORTS[key.replace(/^-/, "") as Column];
    return v.sort.length === 1 && sortBy ? { sortBy, orderBy: key.startsWith("-") ? "ORDER_BY_DESC" : "ORDER_BY_ASC" } : null;
}

/* What matches is found by the search alone: a tree of conditions, just these, or what an active one is shown as. */
const isSearched = (v: ListView): boolean => v.tree !== null || v.only.length > 0 || v.states.some((s) => OF_ACTIVE.includes(s));

/* GetExperiments counts without looking at every row; the rest is for the search. */
export function isPlain(v: ListView): boolean {
    return !isSearched(v) && !v.metrics.length && orderOf(v) !== null;
}

export const formsetOf = (v: ListView, ...more: Parameters<typeof formset>[2] & object): string => formset(v, v.states.flatMap((s) => STATES[s]).map(bare), more);

/* `best`: the hyperparameters of its best trial, where a column shows one that is searched; `summary`: that one's metrics. */
export interface Listed extends Experiment { best?: Record<string, unknown> | null; summary?: unknown }

const BESTS_AT_ONCE = 50, BESTS_MOST = 10_000;
const NO_METRIC = "-.-"; // the trials are wanted, not their points, and this route gives many of them at once
const bests = new Map<number, Record<string, unknown> | null>(); // by trial: what it had stays as it is

async function askBests(ids: number[], signal: AbortSignal): Promise<void> {
    if (bests.size > BESTS_MOST) bests.clear();
    const missing = ids.filter((id) => !bests.has(id));
    for (let i = 0; i < missing.length; i += BESTS_AT_ONCE) {
        const query = { trialIds: missing.slice(i, i + BESTS_AT_ONCE), metricIds: [NO_METRIC], maxDatapoints: 1 };
        try {
            for (const { trial } of (await call("GET /api/v1/trials/time-series", { query, signal })).trials) bests.set(trial.id, trial.hparams);
        } catch (e) {
            if (!(e instanceof ApiError) || e.status !== 404) throw e; // one was deleted just now: the next answer has it no more
        }
    }
}

async function withBests(rows: Experiment[], hps: readonly string[], signal: AbortSignal): Promise<Listed[]> {
    const wanted = rows.filter((e) => e.bestTrialId && searches(e, hps));
    await askBests(wanted.map((e) => e.bestTrialId!), signal);
    const of = new Set(wanted);
    return rows.map((e) => (of.has(e) ? { ...e, best: bests.get(e.bestTrialId!) } : e));
}

/* `of`: the view that it answers, which may not be the one on screen any more. */
export interface Stretch { of: ListView; offset: number; rows: Listed[]; total: number }

export async function askRows(v: ListView, offset: number, limit: number, signal: AbortSignal): Promise<Stretch> {
    if (!isPlain(v)) {
        const { rows, start, total } = await search(formsetOf(v), sortText(v.sort), offset, limit, signal);
        return { of: v, offset: start, rows, total };
    }
    const query = { ...filterOf(v), ...orderOf(v), offset, limit };
    const { experiments, pagination } = await call("GET /api/v1/experiments", { query, signal });
    return { of: v, offset: pagination.startIndex ?? offset, rows: await withBests(experiments, v.hps, signal), total: pagination.total };
}

type Told = (done: number) => void;

/* Everything that matches, in order of id: what is added or changes meanwhile neither hides a row nor shows one twice. */
export async function askAll(v: ListView, told: Told, signal: AbortSignal, bySearch = isSearched(v)): Promise<Listed[]> {
    const all: Listed[] = [];
    for (;;) {
        const after = all.at(-1)?.id ?? 0;
        const experiments: Listed[] = bySearch ? (await search(formsetOf(v, asked("id", ">", after)), "id=asc", 0, ALL_PAGE, signal)).rows
            : (await call("GET /api/v1/experiments", { signal,
                query: { ...filterOf(v), sortBy: "SORT_BY_ID", orderBy: "ORDER_BY_ASC", limit: ALL_PAGE, "experimentIdFilter.gt": after } })).experiments;
        all.push(...experiments);
        told(all.length);
        if (experiments.length < ALL_PAGE) return all;
    }
}

/* Rows by the places that were seen; those that were seen at none, for they moved meanwhile, come last. */
export function inOrder<T extends { id: number }>(rows: readonly T[], seen: readonly number[]): T[] {
    const places = new Map(seen.map((id, i) => [id, i] as const)), at = (e: T) => places.get(e.id) ?? Infinity;
    return [...rows].sort((a, b) => (at(a) === at(b) ? a.id - b.id : at(a) - at(b)));
}

/* Which row has which place, by pages: what changes meanwhile may be at two of them, or at none. */
async function askOrder(v: ListView, first: Stretch, signal: AbortSignal): Promise<number[]> {
    const ids = first.rows.map((e) => e.id);
    for (let offset = ALL_PAGE, total = first.total; offset < total; offset += ALL_PAGE) {
        const page = await askRows({ ...v, hps: [] }, offset, ALL_PAGE, signal);
        ids.push(...page.rows.map((e) => e.id));
        total = page.total;
    }
    return ids;
}

/* Everything that matches, each once, in the order that is shown. One answer is that by itself; more are asked for by id. */
export async function askSorted(v: ListView, told: Told, signal: AbortSignal): Promise<Listed[]> {
    const first = await askRows(v, 0, ALL_PAGE, signal);
    if (first.rows.length >= first.total) return first.rows;
    const byId = /^-?id$/.test(v.sort[0]!), order = byId ? [] : await askOrder(v, first, signal);
    const all = await withBests(await askAll(v, told, signal, !isPlain(v)), isPlain(v) ? v.hps : [], signal);
    return byId ? (v.sort[0] === "id" ? all : all.reverse()) : inOrder(all, order);
}

/* These, as they are now. */
export async function askSome(ids: number[], told: Told, signal: AbortSignal): Promise<Experiment[]> {
    const all: Experiment[] = [];
    for (let i = 0; i < ids.length; i += IDS_PAGE) {
        const query = { "experimentIdFilter.incl": ids.slice(i, i + IDS_PAGE), limit: IDS_PAGE };
        all.push(...(await call("GET /api/v1/experiments", { query, signal })).experiments);
        told(all.length);
    }
    return all.sort((a, b) => a.id - b.id);
}

/* Whether the action is for an experiment as it is. What does not run on this cluster is stopped where it runs. */
export function allows(verb: Verb, e: Pick<Experiment, "state" | "archived" | "unmanaged">): boolean {
    const s = bare(e.state), hasEnded = ["COMPLETED", "CANCELED", "ERROR"].includes(s);
    const isActive = !e.unmanaged && ["ACTIVE", "QUEUED", "PULLING", "STARTING", "RUNNING"].includes(s);
    switch (verb) {
    case "pause": return isActive;
    case "activate": return s === "PAUSED";
    case "cancel": return isActive || s === "PAUSED";
    case "kill": return isActive || s === "PAUSED" || s === "STOPPING_CANCELED";
    case "archive": return hasEnded && !e.archived;
    case "unarchive": return hasEnded && e.archived;
    case "move": return !e.archived && s !== "DELETING" && s !== "DELETED";
    case "delete": return hasEnded || s === "DELETE_FAILED";
    }
}

const ROUTES = {
    pause: "POST /api/v1/experiments/pause", activate: "POST /api/v1/experiments/activate", cancel: "POST /api/v1/experiments/cancel",
    kill: "POST /api/v1/experiments/kill", archive: "POST /api/v1/experiments/archive", unarchive: "POST /api/v1/experiments/unarchive",
    move: "POST /api/v1/experiments/move", delete: "DELETE /api/v1/experiments/delete",
} as const satisfies Record<Verb, keyof Routes>;

/* Acts on just these; what the master says of each one. A request that fails is told of each of its experiments. `to`: the project of a move. */
export async function actOn(verb: Verb, ids: number[], told: Told, to = 0): Promise<Outcome[]> {
    const all: Outcome[] = [];
    for (let i = 0; i < ids.length; i += ACT_PAGE) {
        const experimentIds = ids.slice(i, i + ACT_PAGE), body = { experimentIds, ...(verb === "move" ? { destinationProjectId: to } : {}) };
        try {
            all.push(...(await call(ROUTES[verb], { body: body as never })).results);
        } catch (e) {
            all.push(...experimentIds.map((id) => ({ id, error: (e as Error).message })));
        }
        told(Math.min(ids.length, i + ACT_PAGE));
    }
    return all;
}
