/* Where a job stands: its priority or weight, as its pool's scheduler counts, and its pool. Only what was changed is sent. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { FormDialog } from "../../ui/talk/dialog";
import { shown } from "../../ui/words/name";
import { standingChanges, type Job, type Pool } from "./queue_data";

export interface StandingProps { j: Job; pools: Pool[]; close: () => void; again: () => void }

export function StandingDialog({ j, pools, close, again }: StandingProps) {
    const was = { priority: j.priority, weight: Number(j.weight), pool: j.resourcePool }, [is, setIs] = useState(was);
    const scheduler = pools.find((p) => p.name === j.resourcePool)?.schedulerType;
    const save = async () => {
        const updates = standingChanges(j.jobId, was, is);
        if (updates.length) await call("POST /api/v1/job-queues", { body: { updates } });
        again();
    };
    return <FormDialog title={`Where ${shown(j.name)} #${j.entityId} stands`} button="Save" save={save} close={close}>
        {scheduler === "SCHEDULER_TYPE_PRIORITY" && <label>Priority, 1 is served first <input type="number" min={1} max={99} required value={is.priority} onInput={(e) => setIs({ ...is, priority: e.currentTarget.valueAsNumber })} /></label>}
        {scheduler === "SCHEDULER_TYPE_FAIR_SHARE" && <label>Weight, twice as much is twice the share <input type="number" min={0} step="any" required value={is.weight} onInput={(e) => setIs({ ...is, weight: e.currentTarget.valueAsNumber })} /></label>}
        <label>Pool <select value={is.pool} onChange={(e) => setIs({ ...is, pool: e.currentTarget.value })}>{pools.map((p) => <option key={p.name} value={p.name}>{shown(p.name)}</option>)}</select></label>
    </FormDialog>;
}
