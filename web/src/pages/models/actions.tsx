/* What can be done with a model, in its row and on its page alike. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { useLive } from "../../state/live";
import { may } from "../../state/may";
import { attempt } from "../../ui/talk/attempt";
import { confirm } from "../../ui/talk/confirm";
import { FormDialog } from "../../ui/talk/dialog";
import { toast } from "../../ui/talk/toasts";
import { count } from "../../ui/words/format";
import { shown } from "../../ui/words/name";
import { word } from "../../ui/words/shell";
import { askWorkspaces } from "../places/data";
import { ofModel, type Model } from "./data";

/* Where the reader may put it, except where it is now. */
function MoveDialog({ m, close, again }: { m: Model; close: () => void; again: () => void }) {
    const [to, setTo] = useState(0), all = useLive("workspaces to choose", "", async (signal) => (await askWorkspaces(true, signal)).rows, () => null).data ?? [];
    const open = all.filter((w) => w.id !== m.workspaceId && !w.archived && may("create", { hostId: w.userId, workspaceId: w.id }));
    const save = async () => {
        await call("POST /api/v1/models/{modelName}/move", { path: { modelName: m.name }, body: { modelName: m.name, destinationWorkspaceId: to } });
        toast(`${shown(m.name)} is in ${shown(open.find((w) => w.id === to)?.name ?? String(to))} now.`);
        again();
    };
    return <FormDialog title={`Move ${shown(m.name)}`} button="Move" save={save} close={close}>
        <label>To <select value={to || ""} required onChange={(e) => setTo(Number(e.currentTarget.value))}><option value="">choose a workspace</option>
            {open.map((w) => <option key={w.id} value={w.id}>{shown(w.name)}</option>)}</select></label>
    </FormDialog>;
}

/* `gone`: it is there no more. */
export function ModelActions({ m, again, gone }: { m: Model; again: () => void; gone: () => void }) {
    const [isMoving, setMoving] = useState(false), path = { modelName: m.name }, command = (verb: string) => `det model ${verb} ${word(m.name)}`;
    const archive = async () => {
        await attempt("Not changed", () => (m.archived ? call("POST /api/v1/models/{modelName}/unarchive", { path }) : call("POST /api/v1/models/{modelName}/archive", { path })));
        again();
    };
    const remove = async () => {
        const text = `Delete the model ${shown(m.name)} with ${count(m.numVersions, "version")}? The checkpoints stay, until they are collected.`;
        if (!await confirm(text, "Delete", command("delete"))) return;
        if (await attempt("Not deleted", () => call("DELETE /api/v1/models/{modelName}", { path }), `The model ${shown(m.name)} is deleted.`)) gone();
    };
    return <>
        {may("edit", ofModel(m)) && <button type="button" aria-label={`${m.archived ? "Unarchive" : "Archive"} ${shown(m.name)}`} title={command(m.archived ? "unarchive" : "archive")} onClick={() => void archive()}>{m.archived ? "Unarchive" : "Archive"}</button>}
        {may("delete", ofModel(m)) && <><button type="button" aria-label={`Move… ${shown(m.name)}`} title={`${command("move")} --workspace-name NAME`} onClick={() => setMoving(true)}>Move…</button>
            <button type="button" aria-label={`Delete ${shown(m.name)}`} title={command("delete")} onClick={() => void remove()}>Delete</button></>}
        {isMoving && <MoveDialog m={m} close={() => setMoving(false)} again={again} />}
    </>;
}
