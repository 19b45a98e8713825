/* States as people call them: a word, a sign and a colour, never the colour alone. */
import "./state.css";

type Kind = "good" | "bad" | "busy" | "idle" | "warn";
const WORDS: Record<string, [string, Kind]> = {
    ACTIVE: ["active", "busy"], RUNNING: ["running", "busy"], QUEUED: ["queued", "idle"], PULLING: ["preparing", "busy"], STARTING: ["starting", "busy"],
    PAUSED: ["paused", "warn"], COMPLETED: ["completed", "good"], CANCELED: ["canceled", "idle"], ERROR: ["failed", "bad"],
    STOPPING_COMPLETED: ["completing", "busy"], STOPPING_CANCELED: ["canceling", "warn"], STOPPING_ERROR: ["failing", "bad"],
    STOPPING_KILLED: ["being killed", "warn"], DELETING: ["deleting", "warn"], DELETED: ["deleted", "idle"], DELETE_FAILED: ["not deleted", "bad"],
    SCHEDULED: ["running", "busy"], SCHEDULED_BACKFILLED: ["running, backfilled", "busy"], PARTIALLY_DELETED: ["partly deleted", "warn"],
};
const SIGNS: Record<Kind, string> = { good: "✓", bad: "✕", busy: "▶", idle: "○", warn: "‖" };
const TERMINAL = new Set(["COMPLETED", "CANCELED", "ERROR", "DELETED", "DELETE_FAILED"]);

export function bare(state: string): string {
    return state.replace(/^STATE_/, "");
}

export function isTerminal(state: string): boolean {
    return TERMINAL.has(bare(state));
}

export function State({ state }: { state: string }) {
    const [word, kind] = WORDS[bare(state)] ?? [bare(state).toLowerCase(), "idle"];
    return <span class={`state state-${kind}`}><span aria-hidden="true">{SIGNS[kind]}</span> {word}</span>;
}
