/* Trials that share some hyperparameters, taken together: what differs within, as seeds do, becomes one figure and how far it spreads. */
import { text, type Value } from "../../charts/axes";
import type { Row } from "../../charts/parallel";
import { spreadOf, type Spread } from "../../charts/spread";

export interface TrialGroup {
    ids: number[];
    /* One a name. */
    values: (Value | undefined)[];
    spread: Spread;
}

/* In the order of their means, the best first; those without one last. */
export function groupsOf(rows: Row[], by: readonly string[], metric: string, smallerIsBetter: boolean): TrialGroup[] {
    const all = new Map<string, Row[]>();
    for (const r of rows) {
        const key = JSON.stringify(by.map((n) => [typeof r.values[n], text(r.values[n])]));
        const same = all.get(key);
        if (same) same.push(r);
        else all.set(key, [r]);
    }
    const groups = [...all.values()].map((g): TrialGroup => ({
        ids: g.map((r) => r.id), values: by.map((n) => g[0]!.values[n]),
        spread: spreadOf(g.map((r) => r.values[metric]).filter((v): v is number => typeof v === "number" && Number.isFinite(v))),
    }));
    const least = (g: TrialGroup) => (Number.isNaN(g.spread.mean) ? Infinity : (smallerIsBetter ? 1 : -1) * g.spread.mean);
    return groups.sort((a, b) => (least(a) === least(b) ? a.ids[0]! - b.ids[0]! : least(a) < least(b) ? -1 : 1));
}

/* drawn: of how many of its trials a curve is the mean. */
export function groupName(by: readonly string[], g: TrialGroup, drawn: number = g.ids.length): string {
    return `${by.map((n, i) => `${n} ${text(g.values[i])}`).join(", ")} (n = ${drawn < g.ids.length ? `${drawn} of ` : ""}${g.ids.length})`;
}
