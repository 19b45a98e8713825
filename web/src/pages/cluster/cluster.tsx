/* The cluster: its pools, who runs on each slot of each agent, and the queue with why each job waits. */
import { call } from "../../api/client";
import { useLive } from "../../state/live";
import { may } from "../../state/may";
import { query } from "../../state/router";
import { count, percent } from "../../ui/words/format";
import { ADMINISTRATOR } from "../../ui/look";
import { Name, shown } from "../../ui/words/name";
import "../../ui/parts.css";
import "./cluster.css";
import { Agents } from "./agents";
import { poolAddress } from "./data";
import { Problem } from "../problem";
import { Queue } from "./queue";
import { askQueues, nextOf, type Job, type Pool } from "./queue_data";
import { askWhy, startText } from "./why";

const LIVE_MS = 1000, WAIT_MS = 5000;

/* When the job that is served next is expected to start. */
function ExpectedWait({ jobs, pool }: { jobs: readonly Job[]; pool: string }) {
    const next = nextOf(jobs, pool), id = next?.jobId ?? "";
    const live = useLive(`wait ${id}`, "", async (signal) => (id ? askWhy("jobs", id, signal) : null), () => (id ? WAIT_MS : null)), text = live.data ? startText(live.data.expectedStart) : "";
    return next && text ? <p class="soft">Next is <a href={`${poolAddress(pool)}&why=${next.entityId}`}><Name text={next.name} /></a>. {text}</p> : null;
}

function PoolCard({ p, jobs }: { p: Pool; jobs: readonly Job[] }) {
    const free = Math.max(0, p.slotsAvailable - p.slotsUsed);
    return <section class="panel pool" aria-label={`Pool ${shown(p.name)}`}>
        <h2><a href={poolAddress(p.name)}><Name text={p.name} /></a></h2>
        <p><meter min={0} max={Math.max(1, p.slotsAvailable)} value={p.slotsUsed} aria-label="Slots in use" />{" "}
            {p.slotsUsed} of {count(p.slotsAvailable, "slot")} used{p.slotsAvailable > 0 && ` (${percent(p.slotsUsed / p.slotsAvailable)})`}, {free} free</p>
        <p class="soft">{count(p.numAgents, "agent")} · {count(p.stats?.scheduledCount ?? 0, "job")} running, {p.stats?.queuedCount ?? 0} waiting{p.stats?.pausedCount ? `, ${p.stats.pausedCount} paused` : ""} ·{" "}
            {p.schedulerType.replace("SCHEDULER_TYPE_", "").replace(/_/g, " ").toLowerCase()}</p>
        {p.description && <p class="soft"><Name text={p.description} /></p>}
        <ExpectedWait jobs={jobs} pool={p.name} />
    </section>;
}

/* The address may name one pool: then the page is of that one. */
function OnePool({ name, isThere }: { name: string; isThere: boolean }) {
    return <p class="row">{isThere ? <span class="chip">only the pool <Name text={name} /></span> : <span class="error" role="alert">There is no pool <Name text={name} />.</span>} <a href="/det/clusters">All pools</a></p>;
}

export function ClusterPage() {
    const queues = useLive("queues", "", askQueues, () => LIVE_MS), { pools: all, jobs, total } = queues.data ?? { pools: [], jobs: [], total: 0 };
    const agents = useLive("agents", "", (signal) => call("GET /api/v1/agents", { signal }), () => LIVE_MS);
    const again = () => { queues.again(); agents.again(); };
    const only = query.value.get("pool"), pools = all.filter((p) => !only || p.name === only), seen = jobs.filter((j) => !only || j.resourcePool === only);
    return <>
        <div class="head"><h1>Cluster</h1>{may("cluster") && <a class="push" href="/det/clusters/historical-usage">Use over time</a>}</div>
        <Problem error={queues.error ?? agents.error} what="The cluster" />
        {only && queues.data && <OnePool name={only} isThere={pools.length > 0} />}
        <div class="pools">{pools.map((p) => <PoolCard key={p.name} p={p} jobs={jobs} />)}</div>
        <section class="panel stacked" aria-label="Agents"><h2>Agents</h2>{!may("cluster") && <p class="soft">To drain and to enable them takes {ADMINISTRATOR}.</p>}{agents.data && <Agents agents={agents.data.agents.filter((a) => !only || a.resourcePools.includes(only))} none={only ? "No agent serves this pool." : "No agent is connected."} owners={new Map(jobs.map((j) => [Number(j.entityId), j.username]))} again={again} />}</section>
        <section class="panel stacked" aria-label="Queue"><h2>Queue</h2>{queues.data && <Queue jobs={seen} pools={all} again={again} />}
            {total > jobs.length && <p class="soft">The first {jobs.length} of {count(total, "job")}; <code>det job list</code> has all.</p>}</section>
    </>;
}
