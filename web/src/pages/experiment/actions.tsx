/* What can be done with an experiment in its state; each button names the command that is the same. */
import { useState } from "preact/hooks";
import { ApiError, call, type Routes } from "../../api/client";
import { may, maySomewhere, ofExperiment } from "../../state/may";
import { navigate } from "../../state/router";
import { confirm } from "../../ui/talk/confirm";
import { bare } from "../../ui/state";
import { toast } from "../../ui/talk/toasts";
import { ContinueDialog } from "./continue";
import { allows, RIGHT_OF, VERBS, type Verb } from "../experiments/data";
import { MoveDialog } from "../places/move";
import type { Experiment } from "./data";
import { EditDialog } from "./edit";

type Own = Exclude<Verb, "move">; // which has a dialog of its own
const ROUTES: Record<Own, keyof Routes> = {
    pause: "POST /api/v1/experiments/{id}/pause", activate: "POST /api/v1/experiments/{id}/activate",
    cancel: "POST /api/v1/experiments/{id}/cancel", kill: "POST /api/v1/experiments/{id}/kill",
    archive: "POST /api/v1/experiments/{id}/archive", unarchive: "POST /api/v1/experiments/{id}/unarchive",
    delete: "DELETE /api/v1/experiments/{experimentId}",
};
const ASKS: Partial<Record<Own, string>> = {
    cancel: "Cancel this experiment? Its trials save a checkpoint and end; it cannot be activated again.",
    kill: "Kill this experiment? What was trained since the last checkpoints is lost.",
    delete: "Delete this experiment? Its metrics, logs and checkpoints are deleted and cannot be had back.",
};

export function verbs(e: Pick<Experiment, "state" | "archived" | "unmanaged">): Own[] {
    return VERBS.filter((v): v is Own => v !== "move" && allows(v, e));
}

/* What has ended and still has its trials. */
function canContinue(e: Experiment): boolean {
    return ["COMPLETED", "CANCELED", "ERROR"].includes(bare(e.state)) && !e.archived && !e.unmanaged;
}

export function ExperimentActions({ exp, again }: { exp: Experiment; again: () => void }) {
    const [open, setOpen] = useState<"edit" | "continue" | "move" | null>(null), close = () => setOpen(null);
    const act = async (verb: Own) => {
        const question = ASKS[verb], command = `det experiment ${verb} ${exp.id}`;
        if (question && !await confirm(question, verb[0]!.toUpperCase() + verb.slice(1), command)) return;
        try {
            await call(ROUTES[verb], { path: { id: exp.id, experimentId: exp.id } });
            if (verb !== "delete") return again();
            toast(`Experiment ${exp.id} is being deleted.`);
            navigate("/det/experiments");
        } catch (e) {
            if (!(e instanceof ApiError)) throw e;
            toast(`${verb}: ${e.message}`, true);
        }
    };
    const of = ofExperiment(exp);
    return <span class="row push">{verbs(exp).filter((v) => may(RIGHT_OF[v], of)).map((v) =>
        <button key={v} type="button" title={`det experiment ${v} ${exp.id}`} onClick={() => void act(v)}>{v[0]!.toUpperCase() + v.slice(1)}</button>)}
        {canContinue(exp) && may("operate", of) && <button type="button" title={`det experiment continue ${exp.id}`} onClick={() => setOpen("continue")}>Continue</button>}
        {!exp.archived && maySomewhere("create") && <a class="button" href={`/det/experiments/new?from=${exp.id}`}>Fork</a>}
        {may("edit", of) && <button type="button" onClick={() => setOpen("edit")}>Edit</button>}
        {allows("move", exp) && may("delete", of) && <button type="button" onClick={() => setOpen("move")}>Move…</button>}
        {open === "edit" && <EditDialog exp={exp} close={close} again={again} />}
        {open === "move" && <MoveDialog id={exp.id} projectId={exp.projectId} close={close} again={again} />}
        {open === "continue" && <ContinueDialog exp={exp} close={close} again={again} />}
    </span>;
}
