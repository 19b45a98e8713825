/* The cluster: its pools, who runs on each slot of each agent, and the queue with why each job waits. */
import { call, type Messages } from "../../api/client";
import { colourOf } from "../../charts/palette";
import { useLive } from "../../state/live";
import { may } from "../../state/may";
import { attempt } from "../../ui/talk/attempt";
import { confirm } from "../../ui/talk/confirm";
import { isDark } from "../../ui/dark";
import { count } from "../../ui/words/format";
import { ADMINISTRATOR } from "../../ui/look";
import { Name, shown } from "../../ui/words/name";
import { word } from "../../ui/words/shell";
import { between, duration, full } from "../../ui/words/time";
import "../../ui/parts.css";
import "./cluster.css";
import { ailment, experimentOf, slotKind, slotWords, type Owners } from "./data";
import { Problem } from "../problem";
import { Queue } from "./queue";
import { askQueues, type Pool } from "./queue_data";

const LIVE_MS = 1000;
const AILMENTS = 3;
type Agent = Messages["agent.v1.Agent"];
type Slot = Messages["agent.v1.Slot"];

/* Numbers in names go by their size: agent-2 comes before agent-10. */
export function byName(a: string, b: string): number {
    return a.localeCompare(b, "en", { numeric: true });
}

function PoolCard({ p }: { p: Pool }) {
    const free = Math.max(0, p.slotsAvailable - p.slotsUsed);
    return <section class="panel pool" aria-label={`Pool ${shown(p.name)}`}>
        <h2><Name text={p.name} /></h2>
        <p><meter min={0} max={Math.max(1, p.slotsAvailable)} value={p.slotsUsed} aria-label="Slots in use" />{" "}
            {p.slotsUsed} of {count(p.slotsAvailable, "slot")} used, {free} free</p>
        <p class="soft">{count(p.numAgents, "agent")} · {count(p.stats?.scheduledCount ?? 0, "job")} running, {p.stats?.queuedCount ?? 0} waiting{p.stats?.pausedCount ? `, ${p.stats.pausedCount} paused` : ""} ·{" "}
            {p.schedulerType.replace("SCHEDULER_TYPE_", "").replace(/_/g, " ").toLowerCase()}</p>
    </section>;
}

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
    return <tr>
        <th scope="row"><Name text={a.id} /></th>
        <td data-label="state">{!a.enabled && !a.draining ? "switched off" : a.draining ? "draining" : "on"}</td>
        <td data-label="slots"><span class="slots">{slots.map((s) => <SlotSquare key={s.id} s={s} agent={a} owners={owners} />)}</span><Holders slots={slots} owners={owners} /><Ailments slots={slots} /></td>
        <td data-label="pools">{a.resourcePools.map(shown).join(", ")}</td>
        <td>{!may("cluster") ? null : a.enabled && !a.draining ? <button type="button" onClick={() => void drain()}>Drain</button> : <button type="button" onClick={() => void enable()}>Enable</button>}</td>
    </tr>;
}

function Agents({ agents, owners, again }: { agents: Agent[]; owners: Owners; again: () => void }) {
    if (!agents.length) return <p class="soft">No agent is connected.</p>;
    return <div class="wide"><table class="grid cards" aria-label="Agents">
        <thead><tr><th scope="col">agent</th><th scope="col">state</th><th scope="col">slots</th><th scope="col">pools</th><th scope="col"><span class="hidden">actions</span></th></tr></thead>
        <tbody>{[...agents].sort((a, b) => byName(a.id, b.id)).map((a) => <AgentRow key={a.id} a={a} owners={owners} again={again} />)}</tbody></table></div>;
}

export function ClusterPage() {
    const queues = useLive("queues", "", askQueues, () => LIVE_MS), { pools, jobs, total } = queues.data ?? { pools: [], jobs: [], total: 0 };
    const agents = useLive("agents", "", (signal) => call("GET /api/v1/agents", { signal }), () => LIVE_MS);
    const again = () => { queues.again(); agents.again(); };
    return <>
        <div class="head"><h1>Cluster</h1>{may("cluster") && <a class="push" href="/det/clusters/historical-usage">Use over time</a>}</div>
        <Problem error={queues.error ?? agents.error} what="The cluster" />
        <div class="pools">{pools.map((p) => <PoolCard key={p.name} p={p} />)}</div>
        <section class="panel stacked" aria-label="Agents"><h2>Agents</h2>{!may("cluster") && <p class="soft">To drain and to enable them takes {ADMINISTRATOR}.</p>}{agents.data && <Agents agents={agents.data.agents} owners={new Map(jobs.map((j) => [Number(j.entityId), j.username]))} again={again} />}</section>
        <section class="panel stacked" aria-label="Queue"><h2>Queue</h2>{queues.data && <Queue jobs={jobs} pools={pools} again={again} />}
            {total > jobs.length && <p class="soft">The first {jobs.length} of {count(total, "job")}; <code>det job list</code> has all.</p>}</section>
    </>;
}
