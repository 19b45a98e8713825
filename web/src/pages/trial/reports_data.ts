/* What a trial has reported, as rows of batches. */
import { csvLines } from "../../ui/words/save";
import type { Messages } from "../../api/client";

type Workload = Messages["WorkloadContainer"];

export interface Row { batches: number; /* By "group.name". */ values: Map<string, unknown>; /* The newest end of a report. */ time: string; checkpoint: { uuid: string; state: string } | null }

function blank(batches: number): Row {
    return { batches, values: new Map(), time: "", checkpoint: null };
}

/* Adds a report's values; of a batch that was reported twice the later one counts. */
export function put(row: Row, group: string, values: object | null | undefined, time: string): void {
    for (const [name, v] of Object.entries(values ?? {})) row.values.set(`${group}.${name}`, v);
    if (time > row.time) row.time = time;
}

/* In the order of the answer. `isCut`: more follow, and so perhaps of the last row, which is left for then; one row stays. */
export function rowsOf(all: Workload[], isCut: boolean): Row[] {
    const rows = new Map<number, Row>();
    const at = (batches: number): Row => {
        if (!rows.has(batches)) rows.set(batches, blank(batches));
        return rows.get(batches)!;
    };
    for (const w of all) {
        const m = w.training ?? w.validation, c = w.checkpoint;
        if (m) put(at(m.totalBatches), m.group ?? (w.validation ? "validation" : "training"), m.metrics.avgMetrics, m.endTime ?? "");
        else if (c) at(c.totalBatches).checkpoint = { uuid: c.uuid, state: c.state };
    }
    const list = [...rows.values()];
    return isCut && list.length > 1 ? list.slice(0, -1) : list;
}

/* "-batches" or "validation.loss": what the master is asked to sort by. Of a metric only its group's reports are rows. */
export function orderOf(key: string | undefined, ids: readonly string[]): { key: string; isDown: boolean; group: string | null; name: string | null } {
    const plain = (key ?? "-batches").replace(/^-/, ""), isDown = (key ?? "-").startsWith("-"), known = ids.includes(plain), dot = plain.indexOf(".");
    if (!known) return { key: "batches", isDown: plain === "batches" ? isDown : true, group: null, name: null };
    return { key: plain, isDown, group: plain.slice(0, dot), name: plain.slice(dot + 1) };
}

export function csvOf(rows: Row[], ids: readonly string[]): string {
    return csvLines([["batches", "time", ...ids], ...rows.map((r) => [r.batches, r.time, ...ids.map((id) => plain(r.values.get(id)))])]);
}

function plain(v: unknown): unknown {
    return typeof v === "object" && v !== null ? JSON.stringify(v) : v;
}
