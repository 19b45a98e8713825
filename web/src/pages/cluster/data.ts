/* What a slot is, in a mark and in words. */
import { shown } from "../../ui/name";

export interface SlotLike {
    id: string; enabled: boolean; draining: boolean; state?: string; stateText?: string; forced?: boolean;
    container?: { parent: string } | null; gpu?: { idleSeconds?: number };
}
export interface AgentLike { id: string; enabled: boolean; draining: boolean }
export type SlotKind = "taken" | "off" | "out" | "free";

const IDLE_S = 600;

/* The experiment of a container: its task's id begins with it. null: none of a trial. */
export function experimentOf(parent: string): number | null {
    const m = /^([1-9]\d{0,15})\./.exec(parent);
    return m ? Number(m[1]) : null;
}

/* Why its host would have nothing placed on it; "": it would, or it says nothing of that. */
export function ailment(s: SlotLike): string {
    if (!s.state || s.state === "USABLE") return "";
    return `${s.forced ? "used all the same" : "not usable"}: ${s.stateText || s.state.toLowerCase()}`;
}

export function slotKind(s: SlotLike, agent: AgentLike): SlotKind {
    if (s.container) return "taken";
    if (!s.enabled || !agent.enabled || agent.draining) return "off";
    return ailment(s) && !s.forced ? "out" : "free";
}

function use(s: SlotLike, agent: AgentLike): string {
    if (s.container) {
        const exp = experimentOf(s.container.parent);
        return exp === null ? "a task" : `experiment ${exp}`;
    }
    return !s.enabled || !agent.enabled ? "switched off" : s.draining || agent.draining ? "draining" : ailment(s) && !s.forced ? "" : "free";
}

export function slotWords(s: SlotLike, agent: AgentLike): string {
    const idle = s.gpu?.idleSeconds ?? 0;
    const parts = [use(s, agent), ailment(s), s.container && idle >= IDLE_S ? `no work for ${Math.floor(idle / 60)} min` : ""];
    return `slot ${s.id} of ${shown(agent.id)}: ${parts.filter(Boolean).join("; ")}`;
}
