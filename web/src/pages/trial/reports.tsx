/* What a trial has reported as a table: a row for each batch that has something, a column for each metric. */
import { useState } from "preact/hooks";
import { call, stream, type Messages } from "../../api/client";
import { useLive } from "../../state/live";
import { attempt } from "../../ui/talk/attempt";
import { SortHead } from "../../ui/table/sort_head";
import { State } from "../../ui/state";
import { count, value } from "../../ui/words/format";
import { shown } from "../../ui/words/name";
import { saveAs } from "../../ui/words/save";
import { full } from "../../ui/words/time";
import { Problem } from "../problem";
import { csvOf, orderOf, put, rowsOf, type Row } from "./reports_data";

const PAGE = 100, LIVE_MS = 3000;
const FILTERS = { all: "FILTER_OPTION_UNSPECIFIED", validations: "FILTER_OPTION_VALIDATION", checkpoints: "FILTER_OPTION_CHECKPOINT", both: "FILTER_OPTION_CHECKPOINT_OR_VALIDATION" } as const;
const FILTER_WORDS: Record<keyof typeof FILTERS, string> = { all: "all", validations: "validations", checkpoints: "checkpoints", both: "validations and checkpoints" };
type Filter = keyof typeof FILTERS;

/* Every report, not only those that are seen. */
async function whole(trial: number, ids: readonly string[]): Promise<Row[]> {
    const rows = new Map<number, Row>();
    for (const group of new Set(ids.map((id) => id.slice(0, id.indexOf(".")))))
        for await (const { metrics } of stream<Messages["GetMetricsResponse"]>("GET /api/v1/trials/metrics/trial_metrics", { query: { trialIds: [trial], group } }))
            for (const r of metrics) {
                const row = rows.get(r.totalBatches) ?? { batches: r.totalBatches, values: new Map<string, unknown>(), time: "", checkpoint: null };
                rows.set(r.totalBatches, row);
                put(row, group, r.metrics?.[group === "validation" ? "validation_metrics" : "avg_metrics"] as object | null, r.endTime ?? "");
            }
    return [...rows.values()].sort((a, b) => a.batches - b.batches);
}

function Csv({ trial, ids }: { trial: number; ids: readonly string[] }) {
    const [isBusy, setBusy] = useState(false);
    const save = async () => {
        setBusy(true);
        await attempt("Not saved", async () => saveAs(`trial_${trial}_metrics.csv`, csvOf(await whole(trial, ids), ids)));
        setBusy(false);
    };
    return <button type="button" disabled={isBusy} title="Every report, a row for each batch" onClick={() => void save()}>{isBusy ? "Fetching…" : "CSV"}</button>;
}

function Body({ rows, ids, hasCheckpoints }: { rows: Row[]; ids: readonly string[]; hasCheckpoints: boolean }) {
    return <tbody>{rows.map((r) => <tr key={r.batches}><td data-label="batches">{r.batches.toLocaleString("en")}</td>
        {ids.map((id) => <td key={id} data-label={shown(id)} title={r.values.has(id) ? String(r.values.get(id)) : undefined}>{r.values.has(id) && shown(value(r.values.get(id)))}</td>)}
        {hasCheckpoints && <td data-label="checkpoint">{r.checkpoint && <><code title={r.checkpoint.uuid}>{r.checkpoint.uuid.slice(0, 8)}</code> <State state={r.checkpoint.state} /></>}</td>}
        <td data-label="reported">{r.time && full(r.time)}</td></tr>)}</tbody>;
}

interface Props { trial: number; ended: boolean; /* "group.name" of each that is a column. */ ids: string[]; /* How many there are. */ of: number; sort: string[]; set: (sort: string[]) => void }

export function TrialReports({ trial, ended, ids, of, sort, set }: Props) {
    const [most, setMost] = useState(PAGE), [filter, setFilter] = useState<Filter>("all"), order = orderOf(sort[0], ids);
    const live = useLive(`reports of ${trial}`, `${most} ${filter} ${order.key} ${order.isDown} ${ended}`, async (signal) => {
        const by = order.group === null ? {} : { sortKey: order.name!, group: order.group };
        const r = await call("GET /api/v1/trials/{trialId}/workloads", { path: { trialId: trial }, signal,
            query: { limit: most, filter: order.group === null ? FILTERS[filter] : FILTERS.all, orderBy: order.isDown ? "ORDER_BY_DESC" : "ORDER_BY_ASC", ...by } });
        return { all: r.workloads, isCut: r.workloads.length < (r.pagination.total ?? 0), key: order.key };
    }, () => (ended ? null : LIVE_MS));
    const got = live.data, rows = got ? rowsOf(order.group === null ? got.all : got.all.filter((w) => !w.checkpoint), got.isCut) : [], hasCheckpoints = order.group === null;
    const here = { sort: [order.isDown ? `-${order.key}` : order.key], set: (s: string[]) => set(s.length ? s.slice(-1) : [order.key]) };
    return <section class="panel stacked" aria-label="Metrics">
        <header><h2>Metrics</h2>{of > ids.length && <span class="soft">{ids.length} of {count(of, "metric")}: those that the curves show</span>}
            <label class="quiet">with <select value={filter} disabled={order.group !== null} onChange={(e) => setFilter(e.currentTarget.value as Filter)}>
                {Object.entries(FILTER_WORDS).map(([k, w]) => <option key={k} value={k}>{w}</option>)}</select></label>
            <span class="push"><Csv trial={trial} ids={ids} /></span></header>
        <Problem error={live.error} what="The metrics" />
        {got && !rows.length && <p class="soft">Nothing was reported yet.</p>}
        {rows.length > 0 && <div class="wide rows"><table class="grid cards" aria-label="Metrics by batch">
            <thead><tr><SortHead id="batches" {...here}>batches</SortHead>{ids.map((id) => <SortHead key={id} id={id} title={shown(id)} {...here}>{shown(id)}</SortHead>)}
                {hasCheckpoints && <th scope="col">checkpoint</th>}<th scope="col">reported</th></tr></thead>
            <Body rows={rows} ids={ids} hasCheckpoints={hasCheckpoints} /></table></div>}
        <footer class="row soft"><span>{order.group !== null && `Sorted by a metric of ${shown(order.group)}: only its reports are here. `}{count(rows.length, "row")}{got?.isCut ? ", and more" : ""}</span>
            {got?.isCut && <button type="button" onClick={() => setMost(most * 2)}>More</button>}</footer>
    </section>;
}
