/* One model: what it is for, its versions, its notes. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { useLive } from "../../state/live";
import { may } from "../../state/may";
import { isWhole, type Part } from "../../state/part";
import { navigate } from "../../state/router";
import { attempt } from "../../ui/talk/attempt";
import { confirm } from "../../ui/talk/confirm";
import { Cut } from "../../ui/table/cut";
import { Grid } from "../../ui/table/grid";
import { Notes } from "../../ui/notes/markdown_notes";
import { OnlyLook, OWNER } from "../../ui/look";
import { Name, shown } from "../../ui/words/name";
import { word } from "../../ui/words/shell";
import { ago, full } from "../../ui/words/time";
import { Problem } from "../problem";
import { askVersions, LIVE_MS, modelAddress, ofModel, type Model, type Version, type Workspace } from "./data";
import { ModelActions } from "./actions";
import { EditModel } from "./edit";
import { Metadata } from "./metadata";

async function drop(m: Model, v: Version, again: () => void): Promise<void> {
    if (!await confirm(`Delete version ${v.version} of ${shown(m.name)}? Its checkpoint stays, until it is collected.`, "Delete", `det model delete ${word(m.name)} ${v.version}`)) return;
    await attempt("Not deleted", () => call("DELETE /api/v1/models/{modelName}/versions/{modelVersionNum}", { path: { modelName: m.name, modelVersionNum: v.version } }));
    again();
}

function Versions({ m, versions, again }: { m: Model; versions: Part<Version>; again: () => void }) {
    return <section class="panel stacked" aria-label="Versions"><h2>Versions</h2><Cut part={versions} one="version" />
        <Grid hasFile name="Versions" rows={versions.rows} keyOf={(v) => v.version} none="No version yet: a checkpoint's Register… makes one." columns={[
            { head: "version", cell: (v) => <a href={`${modelAddress(m.name)}/versions/${v.version}`}>{v.version}{v.name && <> <Name text={v.name} /></>}</a> },
            { head: "comment", cell: (v) => v.comment && <Name text={v.comment} /> },
            { head: "from", cell: (v) => v.checkpoint.training.trialId && <a href={`/det/trials/${v.checkpoint.training.trialId}`}>trial {v.checkpoint.training.trialId}</a> },
            { head: "checkpoint", cell: (v) => <code>{v.checkpoint.uuid}</code> },
            { head: "made", cell: (v) => <span title={full(v.creationTime)}>{ago(v.creationTime, Date.now())}</span> },
            { head: "", cell: (v) => may("delete", ofModel(m)) && <button type="button" onClick={() => void drop(m, v, again)}>Delete</button> },
        ]} /></section>;
}

function Loaded({ m, versions, host, again }: { m: Model; versions: Part<Version>; host: Workspace; again: () => void }) {
    const [isEditing, setEditing] = useState(false), path = { modelName: m.name }, isMine = may("edit", ofModel(m));
    return <>
        <div class="head"><h1><Name text={m.name} /></h1>{m.archived && <span class="chip">archived</span>}
            {m.labels.map((l) => <span key={l} class="chip"><Name text={l} /></span>)}
            <span class="row push">{isMine && <button type="button" onClick={() => setEditing(true)}>Edit…</button>}
                <ModelActions m={m} again={again} gone={() => navigate("/det/models")} /></span></div>
        {!isMine && <OnlyLook what="this model" who={OWNER} />}
        <p class="facts soft"><span>in <a href={`/det/workspaces/${host.id}`}><Name text={host.name} /></a></span><span>of <Name text={m.username} /></span><span>made {full(m.creationTime)}</span><span>changed {full(m.lastUpdatedTime)}</span></p>
        {m.description && <p><Name text={m.description} /></p>}
        <Metadata of={m.metadata} />
        <Versions m={m} versions={versions} again={again} />
        <Notes isMine={isMine} draft={`notes.model.${m.id}`} notes={m.notes} again={again} ask={async () => (await call("GET /api/v1/models/{modelName}", { path })).model.notes}
            save={(notes) => call("PATCH /api/v1/models/{modelName}", { path, body: { notes } })} />
        {isEditing && <EditModel model={m} close={() => setEditing(false)} again={again} />}
    </>;
}

export function ModelPage({ name = "" }: Record<string, string>) {
    const live = useLive(`model ${name}`, String(isWhole()), (signal) => askVersions(name, isWhole(), signal), () => LIVE_MS);
    if (live.data) return <Loaded key={live.data.model.id} m={live.data.model} versions={live.data.versions} host={live.data.host} again={live.again} />;
    return <><h1>Model <Name text={name} /></h1>{live.error ? <Problem error={live.error} what="The model" /> : <p class="soft">Asking…</p>}</>;
}
