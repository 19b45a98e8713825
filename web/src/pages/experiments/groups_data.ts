/* Groups of trials across experiments, as they are asked for, sorted and written. */
import type { Messages } from "../../api/client";
import { GROUPED } from "../../state/list_address";
import { number, value } from "../../ui/words/format";
import { csv } from "../../ui/words/save";
import { sorted, type SortKey } from "../../ui/table/sort";

export type Groups = Messages["GroupExperimentsResponse"];
export type Group = Messages["TrialGroup"];
export type Spread = Messages["MetricSpread"];

export const METRICS_MOST = 8;

/* What it is called in a head and in a file. */
export const titleOf = (by: string): string => (Object.hasOwn(GROUPED, by) ? GROUPED[by as keyof typeof GROUPED] : by.slice("hp.".length));
/* Whole: two values of a group that differ in the sixth digit are two. */
export const said = (v: unknown): string => (v === null || v === undefined ? "none" : typeof v === "number" ? String(v) : value(v));
/* What a group is called in the address. */
export const keyOf = (g: Group): string => JSON.stringify(g.values);

/* "0.931 ± 0.004"; of one value nothing deviates. */
export function spreadText(s: Pick<Spread, "n" | "mean" | "deviation">): string {
    if (!s.n) return "";
    return typeof s.mean !== "number" ? "too large" : typeof s.deviation !== "number" ? number(s.mean) : `${number(s.mean)} ± ${number(s.deviation, 2)}`;
}

/* By a metric is by its mean. Where nothing sorts them they stay as they came: the largest first. */
export function sortedGroups(groups: Group[], by: readonly string[], metrics: readonly string[], sort: readonly SortKey[]): Group[] {
    const plain = (v: unknown): number | string => (typeof v === "number" ? v : v === null || v === undefined ? "" : value(v));
    const columns: { id: string; of: (r: { g: Group }) => number | string }[] = [
        ...by.map((id, i) => ({ id, of: (r: { g: Group }) => plain(r.g.values[i]) })),
        { id: "trials", of: (r) => r.g.trials }, { id: "experiments", of: (r) => r.g.experiments },
        ...metrics.map((id, i) => ({ id, of: (r: { g: Group }) => plain(r.g.metrics[i]?.mean) })),
    ];
    return sorted(groups.map((g, id) => ({ id, g })), columns, sort).map((r) => r.g);
}

/* How many there are, and what of them is not seen or not as it looks. */
export function groupsWords(got: Groups, isSorted: boolean): string {
    const n = got.groups.length, all = `${got.total.toLocaleString("en")} ${got.total === 1 ? "group" : "groups"} of ${got.trials.toLocaleString("en")} ${got.trials === 1 ? "trial" : "trials"}`;
    if (got.total <= n) return all;
    return `${all}; the largest ${n.toLocaleString("en")} are shown${isSorted ? ", and sorted among themselves: one that is not shown may come before them" : ""}`;
}

export function groupsCsv(by: string[], metrics: string[], groups: Group[]): string {
    const heads = metrics.flatMap((m) => ["n", "mean", "deviation", "lowest", "highest"].map((s) => `${m} ${s}`));
    return csv([...by.map(titleOf), "trials", "experiments", ...heads],
        groups.map((g) => [...g.values.map((v) => (v !== null && typeof v === "object" ? value(v) : v)), g.trials, g.experiments, ...g.metrics.flatMap((s) => [s.n, s.mean, s.deviation, s.min, s.max])]));
}
