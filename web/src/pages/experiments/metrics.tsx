/* Metrics as columns of the list: what the best trial's summary says of them. */
import { number, value } from "../../ui/words/format";
import { Name, shown } from "../../ui/words/name";
import type { ColumnKind } from "./columns";
import { askMetrics, metricId, searchOf } from "../experiment/data";
import { STATS } from "../experiment/stats";
import type { Listed } from "./data";
import { statOf } from "./search";

const LETTER_PX = 8, EDGE_PX = 40, WIDTH_MOST = 300;

const cell = (v: unknown): string => (typeof v === "number" ? number(v) : v === undefined || v === null ? "" : value(v));

/* Whether a column is of the metric that an experiment searches by, and lower is better there. */
function isTurned(e: Listed, column: string): boolean | undefined {
    const { metric, smallerIsBetter } = searchOf(e);
    return STATS.some((s) => column === `validation.${metric}.${s}`) ? smallerIsBetter : undefined;
}

export function metricKind(column: string): ColumnKind {
    const of = (e: Listed) => statOf(e.summary, column);
    return { title: shown(column), width: Math.min(WIDTH_MOST, EDGE_PX + LETTER_PX * column.length), show: (e) => <Name text={cell(of(e))} />, plain: (e) => of(e) ?? "", heat: of, isTurned: (e) => isTurned(e, column),
        whole: (e) => (of(e) === undefined ? "" : shown(`${String(of(e))} in trial ${e.bestTrialId}, the best`)) };
}

/* What these experiments have reported, as columns. */
export async function askMetricColumns(ids: number[], signal: AbortSignal): Promise<string[]> {
    if (!ids.length) return [];
    return (await askMetrics(ids, signal)).map(metricId).sort().flatMap((n) => STATS.map((s) => `${n}.${s}`));
}
