/* The trials of all experiments that match, in groups by some of their values: each a row with the spread of the chosen metrics, over its members. */
import { useState } from "preact/hooks";
import { call, type Messages } from "../../api/client";
import { GROUPED, type ListView } from "../../state/list_address";
import { useLive } from "../../state/live";
import { Choices } from "../../ui/choices";
import { count, number, value } from "../../ui/format";
import { Name, shown } from "../../ui/name";
import { csv, saveAs } from "../../ui/save";
import { Problem } from "../problem";
import { formsetOf } from "./data";
import type { SetView } from "./filters";

export type Groups = Messages["GroupExperimentsResponse"];
type Group = Messages["TrialGroup"];
type Spread = Messages["MetricSpread"];

const LIVE_MS = 15_000, METRICS_MOST = 8;

/* What it is called in a head and in a file. */
const titleOf = (by: string): string => (Object.hasOwn(GROUPED, by) ? GROUPED[by as keyof typeof GROUPED] : by.slice("hp.".length));
const said = (v: unknown): string => (v === null || v === undefined ? "none" : value(v));
const metricsOf = (v: ListView): string[] => v.metrics.slice(0, METRICS_MOST);

export function GroupChoice({ view, hps, set }: { view: ListView; hps: string[]; set: SetView }) {
    const of = [...Object.keys(GROUPED), ...new Set([...view.group.filter((g) => g.startsWith("hp.")), ...hps.map((n) => `hp.${n}`)])];
    return <Choices name="Groups" summary={view.group.map(titleOf).join(", ") || "none"} ticked={view.group} set={(group) => set({ group })} of={of.map((g) => ({ value: g, text: titleOf(g) }))} />;
}

/* "0.931 ± 0.004"; of one value nothing deviates. */
export function spreadText(s: Pick<Spread, "n" | "mean" | "deviation">): string {
    if (!s.n) return "";
    return typeof s.mean !== "number" ? "too large" : typeof s.deviation !== "number" ? number(s.mean) : `${number(s.mean)} ± ${number(s.deviation, 2)}`;
}

const spreadTitle = (s: Spread): string => (s.n ? `n ${s.n}, mean ${s.mean}, deviation ${s.deviation ?? "none"}, lowest ${s.min}, highest ${s.max}` : "");

export function groupsCsv(by: string[], metrics: string[], groups: Group[]): string {
    const heads = metrics.flatMap((m) => ["n", "mean", "deviation", "lowest", "highest"].map((s) => `${m} ${s}`));
    return csv([...by.map(titleOf), "trials", "experiments", ...heads],
        groups.map((g) => [...g.values, g.trials, g.experiments, ...g.metrics.flatMap((s) => [s.n, s.mean, s.deviation, s.min, s.max])]));
}

function Members({ g, wide }: { g: Group; wide: number }) {
    const more = g.trials - g.members.length;
    return <>{g.members.map((m) => <tr key={m.trialId} class="member">
        <td colSpan={wide} data-label="trial"><a href={`/det/trials/${m.trialId}`}>trial {m.trialId}</a> of <a href={`/det/experiments/${m.experimentId}`}>experiment {m.experimentId}</a></td>
        {m.metrics.map((v, i) => <td key={i}>{number(v as number | null)}</td>)}</tr>)}
    <tr class="member"><td colSpan={wide + g.metrics.length}><a href={`/det/compare?t=${g.members.map((m) => m.trialId).join(",")}`}>Compare these</a>
        {more > 0 && <span class="soft"> {count(more, "more trial")} of this group {more === 1 ? "is" : "are"} not listed</span>}</td></tr></>;
}

function GroupRow({ g, view }: { g: Group; view: ListView }) {
    const [isOpen, setOpen] = useState(false), metrics = metricsOf(view), name = g.values.map((v, i) => `${titleOf(view.group[i]!)} ${said(v)}`).join(", ");
    return <><tr data-group={JSON.stringify(g.values)}>
        {g.values.map((v, i) => <td key={i} class="text" data-label={shown(titleOf(view.group[i]!))}><Name text={said(v)} /></td>)}
        <td data-label="trials"><button type="button" aria-expanded={isOpen} aria-label={`${count(g.trials, "trial")} of ${shown(name)}`} onClick={() => setOpen(!isOpen)}>{isOpen ? "▾" : "▸"} {g.trials}</button></td>
        <td data-label="experiments">{g.experiments}</td>
        {g.metrics.map((s, i) => <td key={i} data-label={shown(metrics[i]!)} title={spreadTitle(s)}>{spreadText(s)}{s.n > 0 && s.n < g.trials && <span class="soft"> (n {s.n})</span>}</td>)}
    </tr>{isOpen && <Members g={g} wide={g.values.length + 2} />}</>;
}

/* One from before the address changed has other columns: it is not shown. */
export function GroupsPanel({ view }: { view: ListView }) {
    const by = view.group, metrics = metricsOf(view), filter = formsetOf(view);
    const live = useLive("groups", JSON.stringify([by, metrics, filter]), (signal) => call("GET /api/v1/experiments-groups", { query: { filter, by, metrics }, signal }), () => LIVE_MS);
    const got = live.data;
    return <section class="panel" aria-label="Groups">
        <p class="row"><span class="soft" role="status">{got ? `${count(got.total, "group")} of ${count(got.trials, "trial")}${got.total > got.groups.length ? `; the largest ${got.groups.length} are shown` : ""}` : live.error ? "" : "Asking…"}
            {by.includes("tags") && "; one with several labels is in each of their groups"}{!metrics.length && "; choose metrics to see their mean and deviation"}{view.metrics.length > METRICS_MOST && `; the first ${METRICS_MOST} metrics are taken`}</span>
            <button type="button" class="push" disabled={!got} onClick={() => got && saveAs("experiment_groups.csv", groupsCsv(by, metrics, got.groups))}>CSV of the groups</button></p>
        <Problem error={live.error} what="The groups" />
        {got && got.groups.length > 0 && <div class="wide" tabIndex={0} role="region" aria-label="Groups of trials"><table class="grid cards" aria-label="Groups of trials">
            <thead><tr>{by.map((b) => <th key={b} scope="col">{shown(titleOf(b))}</th>)}<th scope="col">trials</th><th scope="col">experiments</th>
                {metrics.map((m) => <th key={m} scope="col">{shown(m)}</th>)}</tr></thead>
            <tbody>{got.groups.map((g) => <GroupRow key={JSON.stringify(g.values)} g={g} view={view} />)}</tbody></table></div>}
        {got && !got.groups.length && <p>No trial matches.</p>}
    </section>;
}
