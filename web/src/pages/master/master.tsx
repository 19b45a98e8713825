/* The master itself: its health, its log, its settings with the quotas, and who did what. */
import type { FunctionComponent } from "preact";
import { call } from "../../api/client";
import { useLive } from "../../state/live";
import { isWhole, wholeAddress } from "../../state/part";
import { Grid } from "../../ui/table/grid";
import { Name } from "../../ui/words/name";
import { openTab, Tabs } from "../../ui/tabs";
import { full } from "../../ui/words/time";
import { askQueues } from "../cluster/queue_data";
import { Problem } from "../problem";
import { askReady, entriesAsked, LIVE_MS, newestEntries, quotasOf, SELDOM_MS } from "./data";
import { MasterLog } from "./log";

const TABS = [{ key: "health", title: "Health" }, { key: "log", title: "Log" }, { key: "quotas", title: "Quotas" }, { key: "settings", title: "Settings" }, { key: "audit", title: "Who did what" }];

function Health() {
    const live = useLive("health", "", async (signal) => ({ why: await askReady(signal), master: await call("GET /api/v1/master", { signal }) }), () => LIVE_MS), d = live.data;
    const lives = useLive("lives", "", (signal) => call("GET /api/v1/master/lives", { signal }), () => null), m = d?.master;
    return <>
        <Problem error={live.error} what="The master" />
        {m && <section class="panel stacked" aria-label="Health"><p role="status"><strong>{d.why ? `✕ ${d.why}` : "✓ It is ready."}</strong></p>
            <p class="facts soft"><span>version {m.version}</span>{m.clusterName && <span>cluster <Name text={m.clusterName} /></span>}<span>cluster id <code>{m.clusterId}</code></span><span>master id <code>{m.masterId}</code></span></p></section>}
        <section class="panel stacked" aria-label="Lives of the cluster"><h2>Masters that have led</h2><Problem error={lives.error} what="They" />
            {lives.data && <Grid name="Lives" rows={[...lives.data.lives].reverse()} keyOf={(l) => l.epoch} none="None has yet." columns={[
                { head: "epoch", cell: (l) => l.epoch }, { head: "began", cell: (l) => full(l.begun) }, { head: "master", cell: (l) => <Name text={l.master} /> },
                { head: "batches", cell: (l) => l.lastBatch ?? "" }]} />}</section>
    </>;
}

function Quotas() {
    const live = useLive("quotas", "", async (signal) => {
        const [{ config }, { jobs }] = await Promise.all([call("GET /api/v1/master/config", { signal }), askQueues(signal)]);
        return quotasOf(config ?? {}, jobs);
    }, () => LIVE_MS);
    return <><Problem error={live.error} what="The quotas" />
        {live.data && <Grid hasFile name="Quotas" rows={live.data} keyOf={(q) => `${q.user} ${q.pool}`} none="Nobody's slots are limited: quotas of master.yaml would." columns={[
            { head: "user", cell: (q) => <Name text={q.user} /> }, { head: "pool", cell: (q) => (q.pool ? <Name text={q.pool} /> : "all together") }, { head: "slots", cell: (q) => q.slots },
            { head: "held now", cell: (q) => <><meter min={0} max={Math.max(1, q.slots)} value={q.held} aria-label={`Held by ${q.user}`} /> {q.held}</> }]} />}</>;
}

function Settings() {
    const live = useLive("settings", "", (signal) => call("GET /api/v1/master/config", { signal }), () => null);
    return <><Problem error={live.error} what="The settings" />{live.data && <pre class="text" tabIndex={0} aria-label="Settings">{JSON.stringify(live.data.config, null, 2)}</pre>}</>;
}

function Audit() {
    const whole = isWhole();
    const live = useLive("audit", String(whole), async (signal) => newestEntries((await call("GET /api/v1/master/audit", { query: { limit: entriesAsked(whole) }, signal })).entries, whole), () => (whole ? SELDOM_MS : LIVE_MS));
    return <><Problem error={live.error} what="The record" />
        {live.data?.cut && <p class="soft" role="status">{live.data.cut} {whole ? "Older ones are in the master's database." : <a href={wholeAddress()}>Show more</a>}</p>}
        {live.data && <Grid hasFile name="Who did what" rows={live.data.entries} keyOf={(e) => e.id} none="Nobody has done anything yet." columns={[
            { head: "when", cell: (e) => full(e.time) }, { head: "who", cell: (e) => <Name text={e.username} /> }, { head: "what", cell: (e) => e.operation.replace(/_/g, " ") },
            { head: "of", cell: (e) => <Name text={e.path} /> }, { head: "answer", cell: (e) => e.status ?? "" }, { head: "from", cell: (e) => <Name text={e.address} /> }]} />}</>;
}

const PARTS: Record<string, FunctionComponent> = { health: Health, log: MasterLog, quotas: Quotas, settings: Settings, audit: Audit };

export function MasterPage() {
    const Part = PARTS[openTab(TABS)]!;
    return <><h1>Master</h1><Tabs name="Master" tabs={TABS} /><Part /></>;
}
