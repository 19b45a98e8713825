/* What is asked of the list: a part of the name, states, owners, labels. Each goes into the address, and the master filters. */
import { useEffect, useState } from "preact/hooks";
import { call } from "../../api/client";
import { ARCHIVED, isFiltered, STATE_GROUPS, type Archived, type ListView } from "../../state/list_address";
import { useLive } from "../../state/live";
import { limitOf, partOf } from "../../state/part";
import { Choices } from "../../ui/table/choices";
import { Cut } from "../../ui/table/cut";
import { count } from "../../ui/words/format";
import { Builder, type Columns } from "./builder";

const TYPED_MS = 250; // after the last key
const SEEN_MS = 60_000;
const ARCHIVED_WORDS: Record<Archived, string> = { no: "without archived", only: "only archived", too: "with archived" };
export const NO_FILTERS: Partial<ListView> = { search: "", states: [], owners: [], labels: [], tree: null, only: [] };
export type SetView = (change: Partial<ListView>) => void;

/* What is typed goes into the address when the keys rest. */
function Search({ view, set }: { view: ListView; set: SetView }) {
    const [text, setText] = useState(view.search);
    useEffect(() => setText(view.search), [view.search]);
    useEffect(() => {
        if (text === view.search) return;
        const timer = setTimeout(() => set({ search: text }), TYPED_MS);
        return () => clearTimeout(timer);
    }, [text]);
    return <label class="quiet">Search <input type="search" value={text} placeholder="part of a name" maxLength={1000}
        onInput={(e) => setText(e.currentTarget.value)} /></label>;
}

function summary(texts: string[], none: string): string {
    return texts.length > 2 ? `${texts.length} chosen` : texts.join(", ") || none;
}

function Owners({ view, set }: { view: ListView; set: SetView }) {
    const ask = async (signal: AbortSignal) => {
        const r = await call("GET /api/v1/users", { query: { limit: limitOf(false) }, signal });
        return partOf(r.users ?? [], r.pagination);
    };
    const users = useLive("users", "", ask, () => SEEN_MS);
    const known = (users.data?.rows ?? []).map((u) => ({ value: u.id, text: u.displayName || u.username }));
    const of = [...view.owners.filter((id) => !known.some((u) => u.value === id)).map((id) => ({ value: id, text: `user ${id}` })), ...known];
    const nameOf = (id: number) => of.find((u) => u.value === id)?.text ?? `user ${id}`;
    return <Choices name="Owner" summary={summary(view.owners.map(nameOf), "any")} of={of} ticked={view.owners}
        set={(owners) => set({ owners })} note={<Cut part={users.data} one="user" href="/det/users?all=1" />} />;
}

/* One that the address names is offered although nothing has it any more. */
function Labels({ view, set }: { view: ListView; set: SetView }) {
    const ask = async (signal: AbortSignal) => (await call("GET /api/v1/experiment/labels", { signal })).labels ?? [];
    const labels = useLive("labels", "", ask, () => SEEN_MS);
    const of = [...new Set([...view.labels, ...(labels.data ?? [])])].map((l) => ({ value: l, text: l }));
    return <Choices name="Labels" summary={summary(view.labels, "any")} of={of} ticked={view.labels} set={(labels) => set({ labels })} />;
}

export function Filters({ view, set, total, names }: { view: ListView; set: SetView; total: number | null; names: Columns }) {
    return <form class="row" role="search" onSubmit={(e) => e.preventDefault()}>
        <Search view={view} set={set} />
        <Choices name="State" summary={summary(view.states, "any")} ticked={view.states} set={(states) => set({ states })}
            of={STATE_GROUPS.map((s) => ({ value: s, text: s }))} />
        <Owners view={view} set={set} />
        <Labels view={view} set={set} />
        <select aria-label="Archived" value={view.archived} onChange={(e) => set({ archived: e.currentTarget.value as Archived })}>
            {ARCHIVED.map((a) => <option key={a} value={a}>{ARCHIVED_WORDS[a]}</option>)}
        </select>
        <Builder tree={view.tree} names={names} set={(tree) => set({ tree })} />
        {view.only.length > 0 && <span class="chip">only {count(view.only.length, "chosen experiment")}
            <button type="button" class="plain" aria-label="Show those that were not chosen, too" onClick={() => set({ only: [] })}>×</button></span>}
        {isFiltered(view) && <button type="button" onClick={() => set(NO_FILTERS)}>Clear filters</button>}
        <span class="soft" role="status">{total === null ? "" : count(total, "experiment")}</span>
    </form>;
}
