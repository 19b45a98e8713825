/* The list by SearchExperiments: where it is filtered by a tree, sorted by what no other route sorts by, or has metrics as columns. */
import { call, type Messages } from "../../api/client";
import { SEARCHED, asked, joined, requestOf, type Asked } from "../../state/filter_tree";
import { COLUMNS, type Column, type ListView } from "../../state/list_address";
import type { Listed } from "./data";

const isColumn = (name: string): name is Column => COLUMNS.includes(name as Column);

/* One of these, by a column. */
const oneOf = (column: string, values: string[]): Asked => joined("or", ...values.map((v) => asked(column, "=", v)));

/* Stretches of ids that follow one another. */
export function runsOf(ids: readonly number[]): [number, number][] {
    const runs: [number, number][] = [];
    for (const id of [...ids].sort((a, b) => a - b)) {
        const last = runs.at(-1);
        if (last && id <= last[1] + 1) last[1] = id;
        else runs.push([id, id]);
    }
    return runs;
}

const within = ([lo, hi]: [number, number]): Asked => (lo === hi ? asked("id", "=", lo) : joined("and", asked("id", ">=", lo), asked("id", "<=", hi)));

/* All that the view asks for, the plain choices too. `states`: without their prefix. */
export function formset(v: ListView, states: string[], more: Asked[] = []): string {
    const all: (Asked | null)[] = [
        v.search ? asked("name", "contains", v.search) : null,
        states.length ? oneOf("state", states) : null,
        v.owners.length ? oneOf("user", v.owners.map(String)) : null,
        ...v.labels.map((l) => asked("tags", "=", l)),
        v.archived === "only" ? asked("archived", "=", "true") : null,
        v.only.length ? joined("or", ...runsOf(v.only).map(within)) : null,
        requestOf(v.tree), ...more,
    ];
    return JSON.stringify({ filterGroup: joined("and", ...all.filter((a) => a !== null)), showArchived: v.archived !== "no" });
}

/* "-hp.lr", "name" as "hp.lr=desc,name=asc". */
export function sortText(keys: readonly string[]): string {
    return keys.map((key) => {
        const name = key.replace(/^-/, "");
        return `${isColumn(name) ? SEARCHED[name] : name}=${key.startsWith("-") ? "desc" : "asc"}`;
    }).join(",");
}

/* "validation.loss.min" of what a trial's summary says; undefined: nothing. */
export function statOf(summary: unknown, column: string): unknown {
    const [, group = "", name = "", stat = ""] = /^([^.]+)\.(.+)\.([^.]+)$/s.exec(column) ?? [];
    const key = { validation: "validation_metrics", training: "avg_metrics" }[group] ?? group;
    const at = (o: unknown, k: string): unknown => (typeof o === "object" && o !== null && Object.hasOwn(o, k) ? (o as Record<string, unknown>)[k] : undefined);
    return at(at(at(summary, key), name), stat);
}

function listed({ experiment, bestTrial }: Messages["SearchExperimentExperiment"]): Listed {
    return { ...experiment, best: bestTrial?.hparams ?? null, summary: bestTrial?.summaryMetrics };
}

export async function search(filter: string, sort: string, offset: number, limit: number, signal: AbortSignal): Promise<{ rows: Listed[]; start: number; total: number }> {
    const { experiments, pagination } = await call("GET /api/v1/experiments-search", { query: { filter, sort, offset, limit }, signal });
    return { rows: experiments.map(listed), start: pagination.startIndex ?? offset, total: pagination.total };
}
