/* Why something waits or ended: the sentence, what is in the way, when it may start, and what would help, each a button. */
import { useState } from "preact/hooks";
import { ApiError, call, type Messages } from "../../api/client";
import { useLive } from "../../state/live";
import { may, type Of, type Right } from "../../state/may";
import { confirm } from "../../ui/talk/confirm";
import { visible } from "../../ui/words/ansi";
import { duration } from "../../ui/words/time";
import { toast } from "../../ui/talk/toasts";

export type Why = Messages["Why"];
type What = "experiments" | "trials" | "jobs";

const ASK_MS = 2000;

export interface Suggestion { text: string; command: string }
export interface Blocker { experimentId?: number; trialId?: number; ownerId?: number; owner?: string; slots?: number; secondsLeft?: number | null; ending?: boolean }

export function askWhy(what: What, id: string, signal: AbortSignal): Promise<Why> {
    if (what === "experiments") return call("GET /api/v1/experiments/{id}/why", { path: { id }, signal });
    if (what === "trials") return call("GET /api/v1/trials/{id}/why", { path: { id }, signal });
    return call("GET /api/v1/jobs/{jobId}/why", { path: { jobId: id }, signal });
}

/* det job update JOB --resource-pool POOL */
function movingTo(words: string[]): (() => Promise<unknown>) | null {
    const [, , , jobId = "", option, resourcePool = ""] = words;
    if (words.length !== 6 || option !== "--resource-pool" || jobId.startsWith("-")) return null;
    return () => call("POST /api/v1/job-queues", { body: { updates: [{ jobId, resourcePool }] } });
}

/* det experiment set KEY ID NUMBER */
function setting(words: string[]): (() => Promise<unknown>) | null {
    const keys = new Map([["max-slots", "maxSlots"], ["priority", "priority"], ["weight", "weight"]]);
    const key = keys.get(words[3] ?? ""), n = Number(words[5]);
    if (words.length !== 6 || !key || !/^[1-9]\d*$/.test(words[4]!) || !Number.isFinite(n)) return null;
    const id = Number(words[4]);
    return () => call("PATCH /api/v1/experiments/{experiment.id}", { path: { "experiment.id": id }, body: { id, resources: { [key]: n } } });
}

/* What a suggested command is as a call; null: the page does not know it, then its words are there to copy. */
export function remedy(command: string): (() => Promise<unknown>) | null {
    const words = command.trim().split(/\s+/);
    const [det, noun, verb, id = ""] = words;
    const isNumber = /^[1-9]\d*$/.test(id);
    if (det === "det" && noun === "experiment" && verb === "set") return setting(words);
    if (det === "det" && noun === "job" && verb === "update") return movingTo(words);
    if (det !== "det" || words.length !== 4) return null;
    if (noun === "experiment" && isNumber) {
        const path = { id };
        if (verb === "activate") return () => call("POST /api/v1/experiments/{id}/activate", { path });
        if (verb === "pause") return () => call("POST /api/v1/experiments/{id}/pause", { path });
        if (verb === "cancel") return () => call("POST /api/v1/experiments/{id}/cancel", { path });
        if (verb === "kill") return () => call("POST /api/v1/experiments/{id}/kill", { path });
    }
    if (noun === "trial" && verb === "kill" && isNumber) return () => call("POST /api/v1/trials/{id}/kill", { path: { id } });
    if (noun === "agent" && verb === "enable") return () => call("POST /api/v1/agents/{agentId}/enable", { path: { agentId: id } });
    return null;
}

/* What a remedy takes, and of what: of what waits, or of the experiment that is in the way, whose workspace is not known here. */
export function takes(command: string, own: Own, blockers: Blocker[]): { right: Right; of: Of } {
    const [, noun, verb, id] = command.trim().split(/\s+/);
    if (noun === "agent") return { right: "cluster", of: {} };
    if (noun !== "experiment" || verb === "set" || Number(id) === own.experiment) return { right: verb === "set" ? "edit" : "operate", of: own.of };
    const other = blockers.find((b) => b.experimentId === Number(id));
    return { right: "operate", of: other?.ownerId ? { ownerId: other.ownerId } : {} };
}

/* A command that the reader may not give is told, to be passed on, not offered. */
function Remedy({ s, isMine, again }: { s: Suggestion; isMine: boolean; again: () => void }) {
    const act = isMine ? remedy(s.command) : null;
    const press = async () => {
        if (!act || !await confirm(`${s.text[0]?.toUpperCase()}${s.text.slice(1)}?`, "Do it", s.command)) return;
        try {
            await act();
            toast(`Done: ${s.command}`);
        } catch (e) {
            if (!(e instanceof ApiError)) throw e;
            toast(`${s.command}: ${e.message}`, true);
        }
        again();
    };
    if (!act) return <li>{s.text}{s.command && <>: <code>{s.command}</code></>}</li>;
    return <li><button type="button" title={s.command} onClick={press}>{s.text}</button></li>;
}

function blockerText(b: Blocker): string {
    const left = typeof b.secondsLeft === "number" ? `, about ${duration(b.secondsLeft)} left` : "";
    return `${b.slots ?? 0} slot${b.slots === 1 ? "" : "s"}, ${b.owner ?? "its owner"}${left}${b.ending ? ", ending" : ""}`;
}

function Blockers({ list, total }: { list: Blocker[]; total: number }) {
    if (!list.length) return null;
    return <><h2>In the way</h2><ul>
        {list.map((b) => <li key={`${b.experimentId}.${b.trialId}`}>
            {b.trialId ? <a href={`/det/trials/${b.trialId}`}>trial {b.trialId}</a> : "an allocation"} of{" "}
            <a href={`/det/experiments/${b.experimentId}`}>experiment {b.experimentId}</a>: {blockerText(b)}</li>)}
        {total > list.length && <li>and {total - list.length} more</li>}
    </ul></>;
}

/* "": nothing is known of it. */
export function startText(e: Why["expectedStart"]): string {
    if (!e) return "";
    return typeof e.seconds === "number" ? `Expected to start in about ${duration(e.seconds)} (${e.basis}).` : `When it starts cannot be told: ${e.basis}.`;
}

/* Whether there is anything to say beside the sentence. */
export function hasMore(w: Pick<Why, "expectedStart" | "blockers" | "suggestions">): boolean {
    return startText(w.expectedStart) !== "" || !!w.blockers?.length || !!w.suggestions?.length;
}

function More({ w, own, again }: { w: Why; own: Own; again: () => void }) {
    const blockers = (w.blockers ?? []) as Blocker[], suggestions = (w.suggestions ?? []) as unknown as Suggestion[];
    return <div>
        <p>{startText(w.expectedStart)}</p>
        <Blockers list={blockers} total={w.blockersTotal ?? 0} />
        {suggestions.length > 0 && <><h2>What would help</h2><ul>{suggestions.map((s) => {
            const { right, of } = takes(s.command, own, blockers);
            return <Remedy key={s.text} s={s} isMine={may(right, of)} again={again} />;
        })}</ul></>}
    </div>;
}

/* The experiment that what waits is of; 0: of none. */
export interface Own { experiment: number; of: Of }
export interface WhyProps extends Own { what: What; id: string; again: () => void; ended?: boolean; onlyWaiting?: boolean; isOpen?: boolean }

/* The sentence, and the rest when opened. ended: asked once, for it stays as it is. onlyWaiting: nothing for what runs. */
export function WhyLine({ what, id, experiment, of, again, ended = false, onlyWaiting = false, isOpen = false }: WhyProps) {
    const [open, setOpen] = useState(isOpen);
    const live = useLive(`why ${what} ${id}`, String(ended), (s) => askWhy(what, id, s), () => (ended ? null : ASK_MS));
    const w = live.data;
    const both = () => { live.again(); again(); };
    if (!w || !w.text || (onlyWaiting && !w.waiting && w.reason !== "PAUSED")) return null;
    return <section class="why" aria-label={ended ? "Why it ended" : "Why it waits"}>
        <span>{w.trialId ? `Trial ${w.trialId}: ` : ""}<bdi>{visible(w.text)}</bdi></span>{" "}
        {hasMore(w) && <button type="button" class="plain" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "less" : "why, and what would help"}</button>}
        {open && <More w={w} own={{ experiment, of }} again={both} />}
    </section>;
}
