/* The trials of all experiments that match, in groups by some of their values: each a row with the spread of the chosen metrics, over its members. */
import { call } from "../../api/client";
import { GROUPED, type ListView } from "../../state/list_address";
import { useLive } from "../../state/live";
import { choose } from "../../ui/table/chosen";
import { Choices } from "../../ui/table/choices";
import { count, number } from "../../ui/words/format";
import { Name, shown } from "../../ui/words/name";
import { saveAs } from "../../ui/words/save";
import { SortHead } from "../../ui/table/sort_head";
import { SIDES_MOST } from "../compare/data";
import { Problem } from "../problem";
import { formsetOf } from "./data";
import type { SetView } from "./filters";
import { groupsCsv, groupsWords, keyOf, METRICS_MOST, said, sortedGroups, spreadText, titleOf, type Group, type Spread } from "./groups_data";

const LIVE_MS = 15_000;

const metricsOf = (v: ListView): string[] => v.metrics.slice(0, METRICS_MOST);
const nameOf = (g: Group, view: ListView): string => g.values.map((v, i) => `${titleOf(view.group[i]!)} ${said(v)}`).join(", ");
const spreadTitle = (s: Spread): string => (s.n ? `n ${s.n}, mean ${s.mean}, deviation ${s.deviation ?? "none"}, lowest ${s.min}, highest ${s.max}` : "");

interface Seen { view: ListView; set: SetView }

/* Other groups are not those that were open. */
export function GroupChoice({ view, hps, set }: Seen & { hps: string[] }) {
    const of = [...Object.keys(GROUPED), ...new Set([...view.group.filter((g) => g.startsWith("hp.")), ...hps.map((n) => `hp.${n}`)])];
    return <Choices name="Groups" summary={view.group.map(titleOf).join(", ") || "none"} ticked={view.group} set={(group) => set({ group, open: [] })} of={of.map((g) => ({ value: g, text: titleOf(g) }))} />;
}

/* Of a group it ticks all that are listed. */
function Tick({ ids, label, view, set }: Seen & { ids: number[]; label: string }) {
    const n = ids.filter((id) => view.trials.includes(id)).length;
    return <input type="checkbox" aria-label={label} disabled={!ids.length} checked={n > 0 && n === ids.length}
        ref={(box) => { if (box) box.indeterminate = n > 0 && n < ids.length; }} onChange={(e) => {
            e.currentTarget.checked = n > 0 && n === ids.length; // as the address has it, also where it was too many
            choose(view.trials, ids, (trials) => set({ trials }));
        }} />;
}

function Members({ g, wide, view, set }: Seen & { g: Group; wide: number }) {
    const more = g.trials - g.members.length;
    return <>{g.members.map((m) => <tr key={m.trialId} class={view.trials.includes(m.trialId) ? "member chosen" : "member"}>
        <td><Tick ids={[m.trialId]} label={`Choose trial ${m.trialId}`} view={view} set={set} /></td>
        <td colSpan={wide} data-label="trial"><a href={`/det/trials/${m.trialId}`}>trial {m.trialId}</a> of <a href={`/det/experiments/${m.experimentId}`}>experiment {m.experimentId}</a></td>
        {m.metrics.map((v, i) => <td key={i}>{number(v as number | null)}</td>)}</tr>)}
    <tr class="member"><td colSpan={1 + wide + g.metrics.length}><a href={`/det/compare?t=${g.members.map((m) => m.trialId).join(",")}`}>Compare these</a>
        {more > 0 && <span class="soft"> {count(more, "more trial")} of this group {more === 1 ? "is" : "are"} not listed</span>}</td></tr></>;
}

function GroupRow({ g, view, set }: Seen & { g: Group }) {
    const key = keyOf(g), isOpen = view.open.includes(key), metrics = metricsOf(view), name = shown(nameOf(g, view)), ids = g.members.map((m) => m.trialId);
    const toggle = () => set({ open: isOpen ? view.open.filter((k) => k !== key) : [...view.open, key] });
    const which = ids.length < g.trials ? `the first ${ids.length} of ${count(g.trials, "trial")}` : count(ids.length, "trial");
    return <><tr data-group={key}>
        <td><Tick ids={ids} label={`Choose ${which} of ${name}`} view={view} set={set} /></td>
        {g.values.map((v, i) => <td key={i} class="text" data-label={shown(titleOf(view.group[i]!))}><Name text={said(v)} /></td>)}
        <td data-label="trials"><button type="button" aria-expanded={isOpen} aria-label={`${count(g.trials, "trial")} of ${name}`} onClick={toggle}>{isOpen ? "▾" : "▸"} {g.trials}</button></td>
        <td data-label="experiments">{g.experiments}</td>
        {g.metrics.map((s, i) => <td key={i} data-label={shown(metrics[i]!)} title={spreadTitle(s)}>{spreadText(s)}{s.n > 0 && s.n < g.trials && <span class="soft"> (n {s.n})</span>}</td>)}
    </tr>{isOpen && <Members g={g} wide={g.values.length + 2} view={view} set={set} />}</>;
}

function Heads({ view, set }: Seen) {
    const head = (id: string, title: string) => <SortHead key={id} id={id} title={shown(title)} sort={view.groupSort} set={(groupSort) => set({ groupSort })}>{shown(title)}</SortHead>;
    return <thead><tr><th scope="col"><span class="soft">chosen</span></th>{view.group.map((b) => head(b, titleOf(b)))}
        {head("trials", "trials")}{head("experiments", "experiments")}{metricsOf(view).map((m) => head(m, m))}</tr></thead>;
}

function Chosen({ view: { trials }, set }: Seen) {
    if (!trials.length) return null;
    return <p class="row bulk-bar"><strong role="status">{count(trials.length, "trial")} chosen</strong>
        {trials.length > 1 && trials.length <= SIDES_MOST && <a class="button" href={`/det/compare?t=${trials.join(",")}`}>Compare</a>}
        {trials.length > SIDES_MOST && <span class="soft">at most {SIDES_MOST} can be compared side by side</span>}
        <button type="button" class="plain" onClick={() => set({ trials: [] })}>Choose none</button></p>;
}

/* One from before the address changed has other columns: it is not shown. */
export function GroupsPanel({ view, set }: Seen) {
    const by = view.group, metrics = metricsOf(view), filter = formsetOf(view);
    const live = useLive(JSON.stringify([by, metrics, filter]), "", (signal) => call("GET /api/v1/experiments-groups", { query: { filter, by, metrics }, signal }), () => LIVE_MS);
    const got = live.data, groups = got ? sortedGroups(got.groups, by, metrics, view.groupSort) : [];
    return <section class="panel" aria-label="Groups">
        <p class="row"><span class="soft" role="status">{got ? groupsWords(got, view.groupSort.length > 0) : live.error ? "" : "Asking…"}
            {by.includes("tags") && "; one with several labels is in each of their groups"}{!metrics.length && "; choose metrics to see their mean and deviation"}{view.metrics.length > METRICS_MOST && `; the first ${METRICS_MOST} metrics are taken`}</span>
            <button type="button" class="push" disabled={!got} onClick={() => saveAs("experiment_groups.csv", groupsCsv(by, metrics, groups))}>CSV of the groups</button></p>
        <Problem error={live.error} what="The groups" />
        <Chosen view={view} set={set} />
        {groups.length > 0 && <div class="wide" tabIndex={0} role="region" aria-label="Groups of trials"><table class="grid cards" aria-label="Groups of trials">
            <Heads view={view} set={set} /><tbody>{groups.map((g) => <GroupRow key={keyOf(g)} g={g} view={view} set={set} />)}</tbody></table></div>}
        {got && !groups.length && <p>No trial matches.</p>}
    </section>;
}
