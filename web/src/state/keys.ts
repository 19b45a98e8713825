/* The keys of the page: one list, which is what they do and what the list at "?" says. */

import { PLACES } from "./places";

export type Deed = "search" | "down" | "up" | "tick" | "actions" | "list" | "palette" | `/det/${string}`; // an address: to go there
export interface Key { keys: string; deed: Deed; says: string }

export const KEYS: readonly Key[] = [
    { keys: "/", deed: "search", says: "search on this page" },
    { keys: "j", deed: "down", says: "to the next row" },
    { keys: "k", deed: "up", says: "to the row before" },
    { keys: "x", deed: "tick", says: "tick the row, or take the tick away" },
    { keys: ".", deed: "actions", says: "to what can be done here" },
    ...PLACES.map((p) => ({ keys: p.keys, deed: p.address, says: p.says })),
    { keys: "g n", deed: "/det/experiments/new", says: "write a new experiment" },
    { keys: "?", deed: "list", says: "this list" },
    { keys: "ctrl-k", deed: "palette", says: "look for anything: pages, experiments, what can be done" },
];

/* What a key means after those before it ("" or "g"); what is pending then. */
export function keyed(pending: string, key: string): { deed: Deed | null; pending: string } {
    const whole = pending ? `${pending} ${key}` : key;
    const found = KEYS.find((k) => k.keys === whole) ?? KEYS.find((k) => k.keys === key);
    if (found) return { deed: found.deed, pending: "" };
    return { deed: null, pending: KEYS.some((k) => k.keys.startsWith(`${key} `)) ? key : "" };
}

/* All words of what is typed, in any order and case. */
export function fits(title: string, typed: string): boolean {
    const text = title.toLowerCase();
    return typed.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}
