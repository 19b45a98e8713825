/* An experiment goes to another project. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { useLive } from "../../state/live";
import { FormDialog } from "../../ui/talk/dialog";
import { shown } from "../../ui/words/name";
import { toast } from "../../ui/talk/toasts";
import { askTargets, type Project } from "./data";

/* `but`: the project that it is in, which is no choice. null: nothing is chosen. */
export function Destination({ to, set, but = 0 }: { to: Project | null; set: (to: Project | null) => void; but?: number }) {
    const targets = (useLive("targets", "", askTargets, () => null).data ?? []).filter((p) => p.id !== but);
    return <label>To <select value={to ? String(to.id) : ""} required onChange={(e) => set(targets.find((p) => p.id === Number(e.currentTarget.value)) ?? null)}>
        <option value="">choose a project</option>
        {targets.map((p) => <option key={p.id} value={p.id}>{shown(p.workspaceName)} / {shown(p.name)}</option>)}</select></label>;
}

export function MoveDialog({ id, projectId, close, again }: { id: number; projectId: number; close: () => void; again: () => void }) {
    const [to, setTo] = useState<Project | null>(null);
    const save = async () => {
        if (!to) return;
        await call("POST /api/v1/experiments/{experimentId}/move", { path: { experimentId: id }, body: { destinationProjectId: to.id } });
        toast(`Experiment ${id} is in ${shown(to.name)} now.`);
        again();
    };
    return <FormDialog title={`Move experiment ${id}`} button="Move" save={save} close={close}><Destination to={to} set={setTo} but={projectId} /></FormDialog>;
}
