/* A configuration whose trials begin with the weights of another trial's latest checkpoint, or of one checkpoint. */
import { isMap, parse, parseDocument } from "yaml";

export interface Warm { trial: number; checkpoint: string }

const keyOf = ({ checkpoint }: Warm): string => (checkpoint ? "source_checkpoint_uuid" : "source_trial_id");

/* As it is written below "searcher:". */
export const sourceLine = (w: Warm): string => `${keyOf(w)}: ${w.checkpoint || w.trial}`;

/* The same text, comments and order too, with the source in its searcher; what has none of its own, or cannot be read, as it was. */
export function warmText(text: string, w: Warm): string {
    const doc = parseDocument(text);
    if (doc.errors.length || !isMap(doc.contents) || !isMap(doc.get("searcher"))) return text;
    for (const key of ["source_trial_id", "source_checkpoint_uuid"]) doc.deleteIn(["searcher", key]);
    doc.setIn(["searcher", keyOf(w)], w.checkpoint || w.trial);
    return doc.toString({ lineWidth: 0 });
}

/* Whether a text says so, by an alias or a merge key too. */
export function isWarm(text: string, w: Warm): boolean {
    try {
        const searcher = (parse(text, { merge: true }) as { searcher?: Record<string, unknown> } | null)?.searcher;
        return String(searcher?.[keyOf(w)]).toLowerCase() === String(w.checkpoint || w.trial).toLowerCase();
    } catch {
        return false;
    }
}
