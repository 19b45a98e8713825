/* What of a log is shown: text, levels, ranks, hosts, outputs and sources that it has; and a jump to a time of the reader's clock. */
import { useEffect, useState } from "preact/hooks";
import { stream, type Messages } from "../../api/client";
import { LEVELS, type Level, type LogView } from "../../state/address";
import { useLive } from "../../state/live";
import { Choices } from "../../ui/table/choices";
import { HitButtons } from "./log_hits";
import { isBetween } from "./log_reader";

const FIELDS_MS = 10_000;
type Fields = Messages["TrialLogsFieldsResponse"];
const NONE: Fields = { agentIds: [], containerIds: [], rankIds: [], stdtypes: [], sources: [] };

/* What is there to choose from; more of it comes while the trial runs. */
async function askFields(id: string, signal: AbortSignal): Promise<Fields> {
    let last = NONE;
    for await (const f of stream<Fields>("GET /api/v1/trials/{trialId}/logs/fields", { path: { trialId: id }, signal })) last = f;
    return last;
}

interface PartProps<T> { name: string; there: readonly T[]; chosen: readonly T[]; set: (chosen: T[]) => void }

/* Nothing where there is only one: all lines have it. What is chosen stays to be taken away. */
function Part<T extends string | number>({ name, there, chosen, set }: PartProps<T>) {
    const all = [...new Set([...there, ...chosen])];
    if (all.length < 2 && !chosen.length) return null;
    return <Choices name={name} summary={chosen.length ? chosen.join(", ") : "all"} of={all.map((value) => ({ value, text: String(value) }))} ticked={chosen} set={set} />;
}

/* Its own clock's time, as the field gives it, e.g. "2026-11-25T03:00". */
function Jump({ go }: { go: (time: Date) => void }) {
    const [time, setTime] = useState("");
    return <form class="row" onSubmit={(e) => { e.preventDefault(); go(new Date(time)); }}>
        <label class="quiet">Time <input type="datetime-local" step="1" required value={time} onInput={(e) => setTime(e.currentTarget.value)} /></label>
        <button type="submit">Go there</button></form>;
}

export interface FiltersProps { id: string; view: LogView; set: (change: Partial<LogView>) => void; jump: (time: Date) => void; step: (by: 1 | -1) => void }

export function LogFilters({ id, view, set, jump, step }: FiltersProps) {
    const [text, setText] = useState(view.search), f = useLive(`log fields of ${id}`, "", (signal) => askFields(id, signal), () => FIELDS_MS).data ?? NONE;
    useEffect(() => setText(view.search), [view.search]);
    const toggle = (l: Level) => set({ levels: view.levels.includes(l) ? view.levels.filter((x) => x !== l) : LEVELS.filter((x) => x === l || view.levels.includes(x)) });
    return <><div class="row">
        <form class="row" onSubmit={(e) => { e.preventDefault(); set({ search: text }); }}>
            <label class="quiet">Search <input type="search" value={text} onInput={(e) => setText(e.currentTarget.value)} /></label>
            <label class="quiet"><input type="checkbox" checked={view.regex} onChange={(e) => set({ regex: e.currentTarget.checked, search: text })} /> regular expression</label>
            <label class="quiet"><input type="checkbox" checked={view.between} onChange={(e) => set({ between: e.currentTarget.checked, search: text })} /> and the lines between</label>
            <button type="submit">Find</button>
            {isBetween(view) && <HitButtons go={step} />}
        </form><Jump go={jump} /></div>
        <div class="row">
            <fieldset class="row plain-set"><legend class="hidden">Levels</legend>
                {LEVELS.map((l) => <label key={l} class="quiet"><input type="checkbox" checked={view.levels.includes(l)} onChange={() => toggle(l)} /> {l.toLowerCase()}</label>)}</fieldset>
            <Part name="Ranks" there={f.rankIds} chosen={view.ranks} set={(ranks) => set({ ranks })} />
            <Part name="Hosts" there={f.agentIds} chosen={view.hosts} set={(hosts) => set({ hosts })} />
            <Part name="Outputs" there={f.stdtypes} chosen={view.outputs} set={(outputs) => set({ outputs })} />
            <Part name="Sources" there={f.sources} chosen={view.sources} set={(sources) => set({ sources })} />
        </div></>;
}
