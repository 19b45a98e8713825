/* Epochs of a trial that counts them itself, by a metric of that name which it reports beside the others. */
import type { Points } from "../../charts/sample";

const NAMES = ["epoch", "epochs"];

/* "group.epoch", of the group of `metric` if that has one; null: none is reported. */
export function epochMetric(metrics: readonly { group: string; name: string }[], metric: string): string | null {
    const all = metrics.filter((m) => NAMES.includes(m.name)), found = all.find((m) => metric.startsWith(m.group + ".")) ?? all[0];
    return found ? `${found.group}.${found.name}` : null;
}

/*
 * The epoch of any batch, from those that were reported with one: in between in proportion, and so beyond the ends.
 * One alone counts from 0. null: nothing is known.
 */
export function epochAt(known: Points): ((batches: number) => number) | null {
    const places = known.x.map((x, i) => ({ x, y: known.y[i]! })).filter((p) => Number.isFinite(p.y)).sort((a, b) => a.x - b.x);
    const all = places.filter((p, i) => i === places.length - 1 || places[i + 1]!.x !== p.x); // of a batch that was trained again the later one
    if (!all.length) return null;
    if (all.length === 1) all.unshift(all[0]!.x > 0 ? { x: 0, y: 0 } : all[0]!);
    return (batches) => {
        let lo = 0, hi = all.length - 1;
        while (hi - lo > 1) {
            const mid = (lo + hi) >> 1;
            if (all[mid]!.x <= batches) lo = mid;
            else hi = mid;
        }
        const a = all[lo]!, b = all[hi]!;
        return b.x === a.x ? a.y : a.y + (b.y - a.y) * (batches - a.x) / (b.x - a.x);
    };
}
