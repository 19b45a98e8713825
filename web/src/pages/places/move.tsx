/* An experiment goes to another project. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { useLive } from "../../state/live";
import { FormDialog } from "../../ui/dialog";
import { shown } from "../../ui/name";
import { toast } from "../../ui/toasts";
import { askTargets } from "./data";

export interface MoveProps { id: number; projectId: number; close: () => void; again: () => void }

export function MoveDialog({ id, projectId, close, again }: MoveProps) {
    const [to, setTo] = useState(""), targets = (useLive("targets", "", askTargets, () => null).data ?? []).filter((p) => p.id !== projectId);
    const save = async () => {
        await call("POST /api/v1/experiments/{experimentId}/move", { path: { experimentId: id }, body: { destinationProjectId: Number(to) } });
        toast(`Experiment ${id} is in ${shown(targets.find((p) => p.id === Number(to))?.name ?? "the project")} now.`);
        again();
    };
    return <FormDialog title={`Move experiment ${id}`} button="Move" save={save} close={close}>
        <label>To <select value={to} required onChange={(e) => setTo(e.currentTarget.value)}><option value="">choose a project</option>
            {targets.map((p) => <option key={p.id} value={p.id}>{shown(p.workspaceName)} / {shown(p.name)}</option>)}</select></label>
    </FormDialog>;
}
