/* Agents, a row each with its slots as squares: who runs on which, and what is switched on and off. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import { call, type Messages } from "../../api/client";
import { colourOf } from "../../charts/palette";
import { may } from "../../state/may";
import { isDark } from "../../ui/dark";
import { attempt } from "../../ui/talk/attempt";
import { confirm } from "../../ui/talk/confirm";
import { count } from "../../ui/words/format";
import { Name, shown } from "../../ui/words/name";
import { word } from "../../ui/words/shell";
import { between, duration, full } from "../../ui/words/time";
import { ailment, byName, experimentOf, slotKind, slotWords, type Owners } from "./data";
import { SlotTable } from "./slots";

const AILMENTS = 3;
type Agent = Messages["agent.v1.Agent"];
type Slot = Messages["agent.v1.Slot"];

const MARKS = { taken: "", free: "", off: "✕", out: "!" };

function SlotSquare({ s, agent, owners }: { s: Slot; agent: Agent; owners: Owners }) {
    const exp = s.container && experimentOf(s.container.parent), words = slotWords(s, agent, owners), trial = s.container?.trialId;
    if (exp) return <a class="slot taken" href={trial ? `/det/trials/${trial}` : `/det/experiments/${exp}`} title={words} aria-label={words}
        style={{ background: colourOf(exp, isDark.value) }}><span class="slot-text">{exp}</span></a>;
    const kind = slotKind(s, agent);
    return <span class={`slot ${kind}`} role="img" title={words} aria-label={words}>{MARKS[kind]}</span>;
}

/* A few of them in full: what a square alone cannot say. */
function Ailments({ slots }: { slots: Slot[] }) {
    const ill = slots.filter((s) => ailment(s));
    return <>{ill.slice(0, AILMENTS).map((s) => <p key={s.id} class="soft slot-why">slot {s.id} is {ailment(s)}</p>)}
        {ill.length > AILMENTS && <p class="soft slot-why">and {count(ill.length - AILMENTS, "more slot")}</p>}</>;
}

/* What holds slots of an agent, in words: a square has only a number. */
function Holders({ slots, owners }: { slots: Slot[]; owners: Owners }) {
    const held = [...new Map(slots.flatMap((s) => (s.container ? [[s.container.parent, s.container] as const] : []))).values()];
    return <>{held.map((c) => {
        const exp = experimentOf(c.parent), n = slots.filter((s) => s.container?.parent === c.parent).length;
        return <p key={c.parent} class="soft slot-why">{count(n, "slot")}: {c.trialId ? <a href={`/det/trials/${c.trialId}`}>trial {c.trialId}</a> : "a task"}{exp !== null && owners.has(exp) && <> of <Name text={owners.get(exp)!} /></>}
            {c.placedTime && <span title={full(c.placedTime)}> for {duration(between(c.placedTime, null, Date.now()))}</span>}</p>;
    })}</>;
}

function AgentRow({ a, owners, again }: { a: Agent; owners: Owners; again: () => void }) {
    const [isOpen, setOpen] = useState(false);
    const slots = Object.entries(a.slots as unknown as Record<string, Slot>).sort(([x], [y]) => byName(x, y)).map(([, s]) => s);
    const drain = async () => {
        if (!await confirm(`Drain ${shown(a.id)}? What runs there goes on to its end; nothing new starts there.`, "Drain", `det agent disable ${word(a.id)} --drain`)) return;
        await attempt("Not drained", () => call("POST /api/v1/agents/{agentId}/disable", { path: { agentId: a.id }, body: { drain: true } as never }));
        again();
    };
    const enable = async () => {
        await attempt("Not enabled", () => call("POST /api/v1/agents/{agentId}/enable", { path: { agentId: a.id } }));
        again();
    };
    return <Fragment><tr>
        <th scope="row" class="text"><Name text={a.id} /></th>
        <td data-label="state">{!a.enabled && !a.draining ? "switched off" : a.draining ? "draining" : "on"}</td>
        <td data-label="slots"><span class="slots">{slots.map((s) => <SlotSquare key={s.id} s={s} agent={a} owners={owners} />)}</span><Holders slots={slots} owners={owners} /><Ailments slots={slots} /></td>
        <td class="text" data-label="pools">{a.resourcePools.map((p) => <span key={p}><Name text={p} /> </span>)}</td>
        <td><span class="row one-line">{!may("cluster") ? null : a.enabled && !a.draining ? <button type="button" onClick={() => void drain()}>Drain</button> : <button type="button" onClick={() => void enable()}>Enable</button>}
            <button type="button" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>Slots…</button></span></td>
    </tr>{isOpen && <tr><td colSpan={5}><SlotTable a={a} slots={slots} owners={owners} again={again} /></td></tr>}</Fragment>;
}

export function Agents({ agents, owners, none, again }: { agents: Agent[]; owners: Owners; none: string; again: () => void }) {
    if (!agents.length) return <p class="soft">{none}</p>;
    return <div class="wide"><table class="grid cards" aria-label="Agents">
        <thead><tr><th scope="col">agent</th><th scope="col">state</th><th scope="col">slots</th><th scope="col">pools</th><th scope="col"><span class="hidden">actions</span></th></tr></thead>
        <tbody>{[...agents].sort((a, b) => byName(a.id, b.id)).map((a) => <AgentRow key={a.id} a={a} owners={owners} again={again} />)}</tbody></table></div>;
}
