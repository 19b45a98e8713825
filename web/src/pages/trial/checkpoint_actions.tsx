/* What can be done with a checkpoint: have it here, make it a version of a model, delete it, and have it back. */
import { useEffect, useState } from "preact/hooks";
import { call, fetched, type Messages } from "../../api/client";
import { may, maySomewhere, type Of } from "../../state/may";
import { lazy } from "../../ui/lazy";
import { attempt } from "../../ui/talk/attempt";
import { confirm } from "../../ui/talk/confirm";
import { bytes } from "../../ui/words/format";
import { saveAs } from "../../ui/words/save";
import { bare } from "../../ui/state";

const GOING_MS = 1000, GOING_ASKS = 60;
type Checkpoint = Messages["checkpoint.v1.Checkpoint"];
const Register = lazy<{ uuid: string; close: () => void }>(async () => (await import("../models/register")).RegisterDialog);

function Download({ uuid }: { uuid: string }) {
    const [isBusy, setBusy] = useState(false);
    const get = async () => {
        setBusy(true);
        await attempt("Not downloaded", async () => saveAs(`${uuid}.tar.gz`, await fetched("GET /checkpoints/{checkpointUuid}", { checkpointUuid: uuid }, "application/gzip")));
        setBusy(false);
    };
    return <button type="button" title={`det checkpoint download ${uuid}`} disabled={isBusy} onClick={() => void get()}>{isBusy ? "Fetching…" : "Download"}</button>;
}

/* A fork of its experiment whose trials begin with it. */
function WarmStart({ experiment, checkpoint }: { experiment?: number | null; checkpoint: string }) {
    if (!experiment) return null;
    return <a class="button" href={`/det/experiments/new?from=${experiment}&checkpoint=${checkpoint}`} title="A new experiment that begins with its weights">Warm start</a>;
}

/* Agents carry out what the master took note of: it is asked again until the state is another one, for a minute at most. */
function useGoing(state: string, again: () => void): [boolean, () => void] {
    const [going, setGoing] = useState<{ from: string; asks: number } | null>(null), isGoing = going?.from === state && going.asks < GOING_ASKS;
    useEffect(() => {
        if (!going || !isGoing) return;
        const timer = setTimeout(() => {
            again();
            setGoing({ ...going, asks: going.asks + 1 });
        }, GOING_MS);
        return () => clearTimeout(timer);
    }, [going, isGoing]);
    return [isGoing, () => setGoing({ from: state, asks: 0 })];
}

/* Whether it will be. */
async function remove(c: Checkpoint, size: number): Promise<boolean> {
    const text = `Delete this checkpoint (${bytes(size)})? It can be had back for a while: its files are kept until the cluster's quarantine is over.`;
    if (!await confirm(text, "Delete", `det checkpoint delete ${c.uuid}`)) return false;
    return attempt("Not deleted", () => call("DELETE /api/v1/checkpoints", { body: { checkpointUuids: [c.uuid] } }));
}

export function CheckpointActions({ c, of, size, again }: { c: Checkpoint; of: Of; size: number; again: () => void }) {
    const [isRegistering, setRegistering] = useState(false), state = bare(c.state), [isGoing, expect] = useGoing(state, again);
    const undelete = async () => {
        if (await attempt("Not had back", () => call("POST /api/v1/checkpoints/undelete", { body: { checkpointUuids: [c.uuid] } }))) expect();
    };
    const drop = async () => {
        if (await remove(c, size)) expect();
    };
    if (isGoing) return <span class="soft" role="status">{state === "DELETED" ? "coming back…" : "being deleted…"}</span>;
    if (state === "DELETED" && !may("edit", of)) return null;
    if (state === "DELETED") return <button type="button" title={`det checkpoint undelete ${c.uuid}`} onClick={() => void undelete()}>Undelete</button>;
    if (state !== "COMPLETED") return null;
    return <span class="row one-line"><Download uuid={c.uuid} />{maySomewhere("create") && <WarmStart experiment={c.training.experimentId} checkpoint={c.uuid} />}
        {maySomewhere("create") && <button type="button" onClick={() => setRegistering(true)}>Register…</button>}
        {may("delete", of) && <button type="button" onClick={() => void drop()}>Delete</button>}
        {isRegistering && <Register uuid={c.uuid} close={() => setRegistering(false)} />}</span>;
}
