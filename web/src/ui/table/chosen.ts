/* Trials, or experiments, that are chosen one by one: their ids are in the address. */
import { count } from "../words/format";
import { toast } from "../talk/toasts";

export const CHOSEN_MOST = 300; // a longer address than theirs no master takes, nor does a colleague's mail

/* With all of `ids`, or where they all are chosen with none of them. */
export function chosenAfter(chosen: number[], ids: number[]): number[] {
    const rest = chosen.filter((id) => !ids.includes(id));
    return ids.every((id) => chosen.includes(id)) ? rest : [...rest, ...ids].sort((a, b) => a - b);
}

/* The same; where they are too many the reader is told, and nothing is chosen. */
export function choose(chosen: number[], ids: number[], set: (trials: number[]) => void): void {
    const trials = chosenAfter(chosen, ids);
    if (trials.length > CHOSEN_MOST) toast(`${count(trials.length, "trial")} would be chosen: at most ${CHOSEN_MOST} can be`, true);
    else set(trials);
}
