/* The trials of a search by some hyperparameters: each group's mean, deviation, lowest and highest. */
import type { Value } from "../../charts/axes";
import { colourOf } from "../../charts/palette";
import { isDark } from "../../ui/dark";
import { number, value } from "../../ui/words/format";
import { shown } from "../../ui/words/name";
import { csv, saveAs } from "../../ui/words/save";
import type { Seen } from "./experiment";
import type { TrialGroup } from "./groups";

const said = (v: Value | undefined): string => shown(value(v ?? ""));
const figure = (v: number): string => (Number.isNaN(v) ? "" : number(v));

function GroupRow({ g, seen }: { g: TrialGroup; seen: Seen }) {
    const { n, mean, deviation, lo, hi } = g.spread, id = g.ids[0]!;
    return <tr data-group={g.ids.join()} class={seen.hover.value === id ? "hover" : undefined} onMouseEnter={() => seen.setHover(id)} onMouseLeave={() => seen.setHover(null)}>
        <td><span class="dot" style={{ background: colourOf(id, isDark.value) }} /></td>
        {g.values.map((v, i) => <td key={i} data-label={shown(seen.view.group[i]!)} title={said(v)}>{said(v)}</td>)}
        <td data-label="trials" title={g.ids.join(", ")}>{n < g.ids.length ? `${n} of ${g.ids.length}` : n}</td>
        {[["mean", mean], ["deviation", deviation], ["lowest", lo], ["highest", hi]].map(([label, v]) =>
            <td key={label} data-label={label} title={Number.isNaN(v) ? "" : String(v)}>{figure(v as number)}</td>)}
    </tr>;
}

export function GroupTable({ seen, groups, metric }: { seen: Seen; groups: TrialGroup[]; metric: string }) {
    const by = seen.view.group;
    const save = () => saveAs(`experiment_${seen.exp.id}_groups.csv`, csv([...by, "trials", "n", "mean", "deviation", "lowest", "highest"],
        groups.map(({ ids, values, spread: s }) => [...values, ids.join(" "), s.n, s.mean, s.deviation, s.lo, s.hi])));
    return <>
        <p class="row"><span class="soft">Best {shown(metric)} of each trial; the deviation is that of the sample.</span>
            <button type="button" class="push" onClick={save}>CSV</button></p>
        <div class="wide"><table class="grid cards" aria-label="Groups of trials">
            <thead><tr><th scope="col"><span class="hidden">colour</span></th>{by.map((n) => <th key={n} scope="col">{shown(n)}</th>)}
                {["trials", "mean", "deviation", "lowest", "highest"].map((h) => <th key={h} scope="col">{h}</th>)}</tr></thead>
            <tbody>{groups.map((g) => <GroupRow key={g.ids[0]} g={g} seen={seen} />)}</tbody>
        </table></div>
    </>;
}
