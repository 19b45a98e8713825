/* Acting on many experiments: a dialog says how many and which before anything happens, and of each that failed why. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { ListView } from "../../state/list_address";
import { may, maySomewhere, ofExperiment } from "../../state/may";
import { wordsOf } from "../../state/filter_tree";
import "../../ui/talk/confirm.css";
import { count } from "../../ui/words/format";
import { OWNER } from "../../ui/look";
import { Name, shown } from "../../ui/words/name";
import { word } from "../../ui/words/shell";
import { State } from "../../ui/state";
import { toast } from "../../ui/talk/toasts";
import { SIDES_MOST } from "../compare/data";
import type { Experiment } from "../experiment/data";
import { Destination } from "../places/move";
import type { Project } from "../places/data";
import { actOn, allows, askAll, askSome, RIGHT_OF, VERBS, type Outcome, type Verb } from "./data";
import { isTicked, size, type Selection } from "./selection";

const NAMED_MOST = 100; // of a long list the dialog shows so many
const COMMAND_MOST = 20;
const WARNS: Partial<Record<Verb, string>> = {
    cancel: "Their trials save a checkpoint and end; they cannot be activated again.",
    kill: "What was trained since the last checkpoints is lost.",
    delete: "Their metrics, logs and checkpoints are deleted and cannot be had back.",
};
const DONE: Record<Verb, string> = { pause: "paused", activate: "activated", cancel: "canceled", kill: "killed", archive: "archived",
    unarchive: "unarchived", move: "moved", delete: "being deleted" };

const past = (verb: Verb): string => DONE[verb].replace("being ", "");
const capital = (word: string): string => word[0]!.toUpperCase() + word.slice(1);

/* Those that are ticked, split into those that the action is for, how many it is not for, and of how many the reader may not. */
interface Plan { verb: Verb; on: Experiment[]; others: number; refused: number; filter: string }

/* What "all that match" means, for who reads the dialog. */
function words(v: ListView, unticked: number): string {
    const said = [v.search && `a name with “${shown(v.search)}”`, v.states.length && `state ${v.states.join(" or ")}`,
        v.owners.length && "the chosen owners", v.tree && shown(wordsOf(v.tree)), v.labels.length && `labels ${shown(v.labels.join(", "))}`,
        v.only.length && "the chosen experiments"].filter(Boolean);
    const archived = { no: "not archived", only: "archived", too: "archived or not" }[v.archived];
    return `All that match${unticked ? `, but for ${unticked} unticked` : ""}: ${[...said, archived].join("; ")}.`;
}

async function planOf(verb: Verb, view: ListView, ticked: Selection, told: (n: number) => void, signal: AbortSignal): Promise<Plan> {
    const found = ticked.isAll ? await askAll(view, told, signal) : await askSome([...ticked.ids], told, signal);
    const all = found.filter((e) => isTicked(ticked, e.id)), fits = all.filter((e) => allows(verb, e)), on = fits.filter((e) => may(RIGHT_OF[verb], ofExperiment(e)));
    return { verb, on, others: all.length - fits.length, refused: fits.length - on.length, filter: ticked.isAll ? words(view, ticked.ids.size) : "" };
}

function Which({ plan, failed }: { plan: Plan; failed: Map<number, string> | null }) {
    const rows = failed ? plan.on.filter((e) => failed.has(e.id)) : plan.on;
    return <>
        <div class="bulk-list" tabIndex={0} role="region" aria-label={failed ? "What went wrong" : "Which experiments"}>
            <table class="grid">
                <thead><tr>{["ID", "Name", failed ? "What went wrong" : "State"].map((h) => <th key={h} scope="col">{h}</th>)}</tr></thead>
                <tbody>{rows.slice(0, NAMED_MOST).map((e) => <tr key={e.id}><td>{e.id}</td><td class="text"><Name text={e.name} /></td>
                    <td>{failed ? <span class="error">{failed.get(e.id)}</span> : <State state={e.state} />}</td></tr>)}</tbody>
            </table>
        </div>
        {rows.length > NAMED_MOST && <p class="soft">and {count(rows.length - NAMED_MOST, "more", "more")}</p>}
    </>;
}

/* "": no one command does it. */
function commandOf({ verb, on }: Plan, to: Project | null): string {
    if (verb !== "move") return on.length <= COMMAND_MOST ? `det experiment ${verb} ${on.map((e) => e.id).join(" ")}` : "";
    return to && on.length === 1 ? `det experiment move ${on[0]!.id} ${word(to.workspaceName)} ${word(to.name)}` : "";
}

const mayNot = ({ refused }: Plan): string => `${refused.toLocaleString("en")} ${refused === 1 ? "is" : "are"} not yours to change: that takes ${OWNER}.`;

function Ask({ plan, go, close }: { plan: Plan; go: (to: number) => void; close: () => void }) {
    const [to, setTo] = useState<Project | null>(null), { verb, on, others, refused } = plan, command = commandOf(plan, to), what = `${capital(verb)} ${count(on.length, "experiment")}`;
    return <>
        <h2>{what}?</h2>
        {plan.filter && <p>{plan.filter}</p>}
        {WARNS[verb] && <p>{WARNS[verb]}</p>}
        {verb === "move" && <div class="field"><Destination to={to} set={setTo} /></div>}
        <Which plan={plan} failed={null} />
        {others > 0 && <p>Of those selected, {others.toLocaleString("en")} cannot be {past(verb)} now: left alone.</p>}
        {refused > 0 && <p>Of those selected, {mayNot(plan)}</p>}
        {command && <p class="soft">The same as <code>{command}</code></p>}
        <div class="row"><button type="button" class="main" disabled={verb === "move" && !to} onClick={() => go(to?.id ?? 0)}>{what}</button>
            <button type="button" onClick={close}>Not now</button></div>
    </>;
}

function Told({ plan, outcomes, close }: { plan: Plan; outcomes: Outcome[]; close: () => void }) {
    const failed = new Map(outcomes.filter((o) => o.error).map((o) => [o.id, o.error]));
    return <>
        <h2>{(outcomes.length - failed.size).toLocaleString("en")} of {count(outcomes.length, "experiment")} {DONE[plan.verb]}</h2>
        <Which plan={plan} failed={failed} />
        <div class="row"><button type="button" class="main" onClick={close}>Close</button></div>
    </>;
}

/* Where nothing failed, nothing has to be read and closed. */
function BulkDialog({ plan, close, acted }: { plan: Plan; close: () => void; acted: BulkProps["acted"] }) {
    const ref = useRef<HTMLDialogElement>(null);
    const [done, setDone] = useState<number | null>(null), [outcomes, setOutcomes] = useState<Outcome[] | null>(null);
    useEffect(() => ref.current!.showModal(), []);
    const go = async (to: number) => {
        setDone(0);
        const all = await actOn(plan.verb, plan.on.map((e) => e.id), setDone, to);
        const failed = all.filter((o) => o.error).map((o) => o.id);
        acted(failed);
        if (failed.length) return setOutcomes(all);
        toast(`${count(all.length, "experiment")} ${DONE[plan.verb]}.`);
        close();
    };
    const leave = (e: Event) => {
        e.preventDefault();
        if (done === null || outcomes) close();
    };
    return <dialog ref={ref} class="confirm bulk" aria-label={`${capital(plan.verb)} experiments`} onCancel={leave}>
        {outcomes ? <Told plan={plan} outcomes={outcomes} close={close} />
            : done === null ? <Ask plan={plan} go={(to) => void go(to)} close={close} />
                : <p role="status">{done.toLocaleString("en")} of {count(plan.on.length, "experiment")}…</p>}
    </dialog>;
}

export interface BulkProps {
    view: ListView;
    ticked: Selection;
    total: number;
    clear: () => void;
    /* Shows these and no others. */
    only: (ids: number[]) => void;
    /* Is told of those that went wrong. */
    acted: (failed: number[]) => void;
}

export function Bulk({ view, ticked, total, clear, only, acted }: BulkProps) {
    const [plan, setPlan] = useState<Plan | null>(null), [busy, setBusy] = useState("");
    const stop = useRef<AbortController | null>(null), n = size(ticked, total);
    useEffect(() => () => stop.current?.abort(), []);
    const begin = async (verb: Verb) => {
        const mine = stop.current = new AbortController();
        setBusy("Looking which…");
        try {
            const found = await planOf(verb, view, ticked, (k) => setBusy(`Looking which… ${k.toLocaleString("en")}`), mine.signal);
            if (found.on.length) setPlan(found);
            else toast(found.refused ? `Of those selected, ${mayNot(found)}` : `None of those selected can be ${past(verb)} now.`, true);
        } catch (e) {
            if (!mine.signal.aborted) toast(`${verb}: ${(e as Error).message}`, true);
        }
        setBusy("");
    };
    const isWhole = ticked.isAll && !ticked.ids.size;
    if (!n && !plan) return null;
    return <section class="row bulk-bar" aria-label="Selected experiments">
        <strong role="status">{busy || `${n.toLocaleString("en")} selected${isWhole ? ": all that match" : ""}`}</strong>
        {VERBS.filter((v) => maySomewhere(RIGHT_OF[v])).map((v) => <button key={v} type="button" disabled={!!busy} onClick={() => void begin(v)}>{capital(v)}</button>)}
        {!ticked.isAll && <button type="button" title="The list and its groups of just these; the address has them" onClick={() => only([...ticked.ids])}>Only these</button>}
        {!ticked.isAll && n > 1 && n <= SIDES_MOST && <a class="button" href={`/det/compare?e=${[...ticked.ids].sort((a, b) => a - b).join(",")}`}>Compare</a>}
        <button type="button" class="plain" onClick={() => { stop.current?.abort(); clear(); }}>Clear selection</button>
        {plan && <BulkDialog plan={plan} close={() => setPlan(null)} acted={acted} />}
    </section>;
}
