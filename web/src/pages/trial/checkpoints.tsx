/* Checkpoints as a table: when, of what, how large, with the files of each. */
import { Fragment } from "preact";
import { useState } from "preact/hooks";
import type { Messages } from "../../api/client";
import type { Live } from "../../state/live";
import type { Of } from "../../state/may";
import { partOf } from "../../state/part";
import { Cut } from "../../ui/table/cut";
import { bytes, number } from "../../ui/words/format";
import { State } from "../../ui/state";
import { full } from "../../ui/words/time";
import { batchesOf } from "../experiment/data";
import { Problem } from "../problem";
import { CheckpointActions } from "./checkpoint_actions";
import { Files, FilesButton } from "./checkpoint_files";

type Checkpoint = Messages["checkpoint.v1.Checkpoint"];
/* What is not kept goes after the end of its experiment. */
export const COLLECTED_MS = 10_000;

export function sizeOf(c: Checkpoint): number {
    return Object.values(c.resources).reduce((sum: number, n) => sum + Number(n), 0);
}

interface TableProps { live: Live<{ checkpoints: Checkpoint[]; pagination: Messages["Pagination"] }>; withTrial?: boolean; /* Which is marked as the best; null: none is known. */ best: string | null; /* Whose they are. */ of: Of }

export function CheckpointTable({ live, withTrial = false, best, of }: TableProps) {
    const [open, setOpen] = useState<string[]>([]), columns = withTrial ? 9 : 8;
    if (!live.data) return live.error ? <Problem error={live.error} what="The checkpoints" /> : <p class="soft">Asking…</p>;
    const all = live.data.checkpoints;
    if (!all.length) return <p class="soft">No checkpoint yet.</p>;
    return <><Cut part={partOf(all, live.data.pagination)} one="checkpoint" /><div class="wide"><table class="grid cards" aria-label="Checkpoints">
        <thead><tr>{withTrial && <th scope="col">trial</th>}<th scope="col">batches</th><th scope="col">state</th><th scope="col">metric</th><th scope="col">size</th>
            <th scope="col">files</th><th scope="col">reported</th><th scope="col">UUID</th><th scope="col"><span class="hidden">actions</span></th></tr></thead>
        <tbody>{all.map((c) => <Fragment key={c.uuid}><tr class={c.uuid === best ? "chosen" : undefined}>
            {withTrial && <td data-label="trial">{c.training.trialId && <a href={`/det/trials/${c.training.trialId}`}>{c.training.trialId}</a>}</td>}
            <td data-label="batches">{number(batchesOf(c))}</td><td data-label="state"><State state={c.state} /></td><td data-label="metric">{number(c.training.searcherMetric as number | null)}</td>
            <td data-label="size">{bytes(sizeOf(c))}</td><td data-label="files"><FilesButton c={c} isOpen={open.includes(c.uuid)} turn={() => setOpen(open.includes(c.uuid) ? open.filter((u) => u !== c.uuid) : [...open, c.uuid])} /></td><td data-label="reported">{full(c.reportTime)}</td><td data-label="UUID" class="uuid"><code>{c.uuid}</code>{c.uuid === best && <> <span class="chip">best</span></>}</td>
            <td><CheckpointActions c={c} of={of} size={sizeOf(c)} again={live.again} /></td>
        </tr>{open.includes(c.uuid) && <tr><td colSpan={columns}><Files uuid={c.uuid} /></td></tr>}</Fragment>)}</tbody>
    </table></div></>;
}
