/* A configuration whose trials begin with the weights of another trial's latest checkpoint, or of one checkpoint. */
import { parseDocument } from "yaml";

export interface Warm { trial: number; checkpoint: string }

/* The same text, comments and order too, with the source in its searcher; what has none, or cannot be read, as it was. */
export function warmText(text: string, { trial, checkpoint }: Warm): string {
    const doc = parseDocument(text);
    if (doc.errors.length || !doc.hasIn(["searcher", "name"])) return text;
    for (const key of ["source_trial_id", "source_checkpoint_uuid"]) doc.deleteIn(["searcher", key]);
    if (checkpoint) doc.setIn(["searcher", "source_checkpoint_uuid"], checkpoint);
    else doc.setIn(["searcher", "source_trial_id"], trial);
    return doc.toString({ lineWidth: 0 });
}
