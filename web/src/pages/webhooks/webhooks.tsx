/* Webhooks: who is told of states of experiments and of lines of logs, whether they take it, and the key by which they know who tells. */
import { useState } from "preact/hooks";
import { call, type Messages } from "../../api/client";
import { useLive } from "../../state/live";
import { may } from "../../state/may";
import { attempt } from "../../ui/talk/attempt";
import { confirm } from "../../ui/talk/confirm";
import { Copy } from "../../ui/words/copy";
import { FormDialog } from "../../ui/talk/dialog";
import { count } from "../../ui/words/format";
import { Grid } from "../../ui/table/grid";
import { Name, shown } from "../../ui/words/name";
import { Problem } from "../problem";

type Webhook = Messages["webhook.v1.Webhook"];
type Trigger = Pick<Messages["webhook.v1.Trigger"], "triggerType" | "condition">;
const LIVE_MS = 5000;
const STATES = { COMPLETED: "completed", ERROR: "failed", CANCELED: "canceled", PAUSED: "paused", ACTIVE: "active" } as const;
type State = keyof typeof STATES;

/* "an experiment is completed", "a line of a log has out of memory". */
export function triggerText({ triggerType, condition }: Trigger): string {
    const c = condition as { state?: unknown; regex?: unknown }, state = String(c.state ?? "");
    return triggerType === "TRIGGER_TYPE_TASK_LOG" ? `a line of a log has ${String(c.regex ?? "")}` : `an experiment is ${Object.hasOwn(STATES, state) ? STATES[state as State] : state}`;
}

/* The part of a URL that is no secret. */
export function hostOf(url: string): string {
    try {
        return new URL(url).host;
    } catch {
        return "a receiver";
    }
}

function standing(w: Webhook): string {
    const lost = w.lost ? `; ${count(w.lost, "event")} given up` : "";
    if (!w.failures) return (w.waiting ? `${count(w.waiting, "event")} on the way` : w.lost ? "the others are taken" : "all taken") + lost;
    return `${w.lastError}; ${count(w.failures, "attempt")} in a row, ${count(w.waiting, "event")} waiting, tried again by itself${lost}`;
}

function NewWebhook({ close, made }: { close: () => void; made: () => void }) {
    const [url, setUrl] = useState(""), [isSlack, setSlack] = useState(false), [states, setStates] = useState<State[]>(["COMPLETED", "ERROR"]), [regex, setRegex] = useState("");
    const save = async () => {
        const triggers: Trigger[] = [...states.map((state) => ({ triggerType: "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE" as const, condition: { state } })),
            ...(regex ? [{ triggerType: "TRIGGER_TYPE_TASK_LOG" as const, condition: { regex } }] : [])];
        const webhook = { url, webhookType: isSlack ? "WEBHOOK_TYPE_SLACK" : "WEBHOOK_TYPE_DEFAULT", triggers };
        await call("POST /api/v1/webhooks", { body: { webhook: webhook as never } }); // the others are the master's to give
        made();
    };
    return <FormDialog title="New webhook" button="Create" save={save} close={close}>
        <label>URL <input type="url" value={url} required maxLength={2000} placeholder="https://" onInput={(e) => setUrl(e.currentTarget.value)} /></label>
        <label>What is sent <select value={isSlack ? "slack" : "json"} onChange={(e) => setSlack(e.currentTarget.value === "slack")}>
            <option value="json">JSON with a signature</option><option value="slack">a message for Slack</option></select></label>
        <fieldset><legend>When an experiment is</legend>{Object.entries(STATES).map(([s, text]) => <label key={s} class="quiet"><input type="checkbox" checked={states.includes(s as State)}
            onChange={() => setStates(states.includes(s as State) ? states.filter((o) => o !== s) : [...states, s as State])} /> {text}</label>)}</fieldset>
        <label>When a line of a task's log has (a regular expression; once for a task) <input value={regex} maxLength={512} onInput={(e) => setRegex(e.currentTarget.value)} /></label>
        <p class="soft">The master sends it, from its own network, until it is taken with a status of 2xx, for three days at most: an event may come twice, with the same event_id. Redirections are not followed.</p>
    </FormDialog>;
}

async function remove(w: Webhook, again: () => void): Promise<void> {
    const lost = w.waiting ? ` What ${hostOf(w.url)} has not taken yet (${count(w.waiting, "event")}) is not sent any more.` : "";
    if (!await confirm(`Delete the webhook to ${hostOf(w.url)}?${lost}`, "Delete")) return;
    await attempt("Not deleted", () => call("DELETE /api/v1/webhooks/{id}", { path: { id: w.id } }), "It is deleted.");
    again();
}

/* What receivers check the header X-Determined-AI-Signature with. */
function Key() {
    const [key, setKey] = useState("");
    const show = () => attempt("Not shown", async () => { setKey((await call("GET /api/v1/webhooks/signing-key")).signingKey); });
    if (!key) return <button type="button" onClick={() => void show()}>Show the signing key</button>;
    return <section class="why" aria-label="The signing key"><p>Who has it can say what seems to come from this cluster. The header X-Determined-AI-Signature is the HMAC-SHA256 in hexadecimal, by this key, of
        the header X-Determined-AI-Signature-Timestamp, a comma and the body.</p><p><code class="mark">{key}</code></p>
        <div class="row"><Copy text={key} /><button type="button" onClick={() => setKey("")}>Hide it</button></div></section>;
}

export function WebhooksPage() {
    const [isMaking, setMaking] = useState(false), isAllowed = may("cluster");
    const live = useLive("webhooks", "", async (signal) => (await call("GET /api/v1/webhooks", { signal })).webhooks, () => LIVE_MS);
    return <>
        <div class="head"><h1>Webhooks</h1>{live.data && <span class="soft">{count(live.data.length, "webhook")}</span>}
            {isAllowed && live.data && <span class="row push"><Key /><button type="button" onClick={() => setMaking(true)}>New webhook…</button></span>}</div>
        <Problem error={live.error} what="The webhooks" />
        {live.data && <Grid name="Webhooks" rows={live.data} keyOf={(w) => w.id} none="Nobody is told of anything yet." columns={[
            { head: "receiver", cell: (w) => <Name text={w.url} /> }, { head: "told when", cell: (w) => <Name text={w.triggers.map(triggerText).join(", ")} /> },
            { head: "as", cell: (w) => (w.webhookType === "WEBHOOK_TYPE_SLACK" ? "Slack" : "JSON") }, { head: "taken", cell: (w) => <span class={w.failures ? "error" : undefined}>{shown(standing(w))}</span> },
            { head: "", cell: (w) => isAllowed && <><button type="button" onClick={() => void attempt("Not taken", () => call("POST /api/v1/webhooks/{id}/test", { path: { id: w.id } }), `${shown(hostOf(w.url))} has taken a test.`).then(live.again)}>Test</button>
                <button type="button" onClick={() => void remove(w, live.again)}>Delete</button></> },
        ]} />}
        {isMaking && <NewWebhook close={() => setMaking(false)} made={() => live.again()} />}
    </>;
}
