/* What a slot is, in a mark and in words. */
import { shown } from "../../ui/words/name";
import { full } from "../../ui/words/time";

export interface SlotLike {
    id: string; enabled: boolean; draining: boolean; state?: string; stateText?: string; forced?: boolean;
    container?: { parent: string; trialId?: number; placedTime?: string } | null; gpu?: { idleSeconds?: number };
}
export interface AgentLike { id: string; enabled: boolean; draining: boolean }
export type SlotKind = "taken" | "off" | "out" | "free";

const IDLE_S = 600;

/* The experiment of a container: its task's id begins with it. null: none of a trial. */
export function experimentOf(parent: string): number | null {
    const m = /^([1-9]\d{0,15})\./.exec(parent);
    return m ? Number(m[1]) : null;
}

/* The page of one pool alone. */
export const poolAddress = (name: string): string => `/det/clusters?pool=${encodeURIComponent(name)}`;

/* Numbers in names go by their size: agent-2 comes before agent-10. */
export function byName(a: string, b: string): number {
    return a.localeCompare(b, "en", { numeric: true });
}

/* Why its host would have nothing placed on it; "": it would, or it says nothing of that. */
export function ailment(s: SlotLike): string {
    if (!s.state || s.state === "USABLE") return "";
    return `${s.forced ? "used all the same" : "not usable"}: ${shown(s.stateText || s.state.toLowerCase())}`;
}

export function slotKind(s: SlotLike, agent: AgentLike): SlotKind {
    if (s.container) return "taken";
    if (!s.enabled || !agent.enabled || agent.draining) return "off";
    return ailment(s) && !s.forced ? "out" : "free";
}

/* Whose an experiment is, by its number. */
export type Owners = ReadonlyMap<number, string>;

function use(s: SlotLike, agent: AgentLike, owners?: Owners): string {
    if (s.container) {
        const { parent, trialId, placedTime } = s.container, exp = experimentOf(parent), owner = exp === null ? undefined : owners?.get(exp);
        return [exp === null ? "a task" : `experiment ${exp}`, trialId && `trial ${trialId}`, owner && `of ${shown(owner)}`, placedTime && `since ${full(placedTime)}`].filter(Boolean).join(", ");
    }
    return !s.enabled || !agent.enabled ? "switched off" : s.draining || agent.draining ? "draining" : ailment(s) && !s.forced ? "" : "free";
}

export function slotWords(s: SlotLike, agent: AgentLike, owners?: Owners): string {
    const idle = s.gpu?.idleSeconds ?? 0;
    const parts = [use(s, agent, owners), ailment(s), s.container && idle >= IDLE_S ? `no work for ${Math.floor(idle / 60)} min` : ""];
    return `slot ${s.id} of ${shown(agent.id)}: ${parts.filter(Boolean).join("; ")}`;
}
