/* One version of a model: the checkpoint that it is, with its files; how a program loads it; comment and notes. */
import { useState } from "preact/hooks";
import { call, type Messages } from "../../api/client";
import { useLive } from "../../state/live";
import { may } from "../../state/may";
import { FormDialog } from "../../ui/talk/dialog";
import { bytes } from "../../ui/words/format";
import { Grid } from "../../ui/table/grid";
import { Notes } from "../../ui/notes/markdown_notes";
import { Name } from "../../ui/words/name";
import { State } from "../../ui/state";
import { full } from "../../ui/words/time";
import { Problem } from "../problem";
import { labelsOf, loadText, modelAddress, ofModel } from "./data";
import { Metadata, MetadataField, replacing, textOf, type Words } from "./metadata";

type Version = Messages["model.v1.ModelVersion"];

interface EditProps { v: Version; path: { modelName: string; modelVersionNum: number }; close: () => void; again: () => void }

function Edit({ v, path, close, again }: EditProps) {
    const was = v.labels.join("\n"), [name, setName] = useState(v.name), [comment, setComment] = useState(v.comment), [labels, setLabels] = useState(was);
    const [had] = useState(() => textOf(v.metadata as Words)), [metadata, setMetadata] = useState(had);
    const save = async () => {
        const body = { ...(name !== v.name ? { name } : {}), ...(comment !== v.comment ? { comment } : {}), ...(labels !== was ? { labels: labelsOf(labels) } : {}),
            ...(metadata !== had ? { metadata: await replacing(had, metadata, async () => (await call("GET /api/v1/models/{modelName}/versions/{modelVersionNum}", { path })).modelVersion.metadata as Words) } : {}) };
        if (Object.keys(body).length) await call("PATCH /api/v1/models/{modelName}/versions/{modelVersionNum}", { path, body });
        again();
    };
    return <FormDialog title={`Edit version ${v.version}`} button="Save" save={save} close={close}>
        <label>Name <input value={name} onInput={(e) => setName(e.currentTarget.value)} /></label>
        <label>Comment <textarea rows={3} value={comment} onInput={(e) => setComment(e.currentTarget.value)} /></label>
        <label>Labels, one a line <textarea rows={3} value={labels} onInput={(e) => setLabels(e.currentTarget.value)} /></label>
        <MetadataField text={metadata} set={setMetadata} />
    </FormDialog>;
}

function CheckpointOf({ c }: { c: Version["checkpoint"] }) {
    const files = Object.entries(c.resources).filter(([n]) => !n.endsWith("/")).sort(([a], [b]) => (a < b ? -1 : 1));
    return <section class="panel stacked" aria-label="Checkpoint"><h2>Checkpoint</h2>
        <p class="facts"><code>{c.uuid}</code><State state={c.state} /><span>{full(c.reportTime)}</span>
            {c.training.trialId && <a href={`/det/trials/${c.training.trialId}`}>trial {c.training.trialId}</a>}
            {c.training.experimentId && <a href={`/det/experiments/${c.training.experimentId}`}>experiment {c.training.experimentId}</a>}</p>
        <Grid name="Files" rows={files} keyOf={([n]) => n} none="It has no files." columns={[{ head: "file", cell: ([n]) => <Name text={n} /> }, { head: "size", cell: ([, n]) => bytes(n) }]} />
    </section>;
}

function Loaded({ v, again }: { v: Version; again: () => void }) {
    const [isEditing, setEditing] = useState(false), path = { modelName: v.model.name, modelVersionNum: v.version }, isMine = may("edit", ofModel(v.model));
    return <>
        <div class="head"><h1>Version {v.version} of <a href={modelAddress(v.model.name)}><Name text={v.model.name} /></a></h1>
            {v.labels.map((l) => <span key={l} class="chip"><Name text={l} /></span>)}
            {isMine && <span class="row push"><button type="button" onClick={() => setEditing(true)}>Edit…</button></span>}</div>
        <p class="facts soft">{v.name && <Name text={v.name} />}<span>of <Name text={v.username} /></span><span>made {full(v.creationTime)}</span></p>
        {v.comment && <p><Name text={v.comment} /></p>}
        <Metadata of={v.metadata} />
        <CheckpointOf c={v.checkpoint} />
        <section class="panel stacked" aria-label="In a program"><h2>In a program</h2><pre class="text">{loadText(v.model.name, v.version)}</pre></section>
        <Notes isMine={isMine} draft={`notes.version.${v.id}`} notes={v.notes} again={again}
            ask={async () => (await call("GET /api/v1/models/{modelName}/versions/{modelVersionNum}", { path })).modelVersion.notes}
            save={(notes) => call("PATCH /api/v1/models/{modelName}/versions/{modelVersionNum}", { path, body: { notes } })} />
        {isEditing && <Edit v={v} path={path} close={() => setEditing(false)} again={again} />}
    </>;
}

export function VersionPage({ name = "", version = "" }: Record<string, string>) {
    const live = useLive(`version ${version} ${name}`, "", async (signal) => (await call("GET /api/v1/models/{modelName}/versions/{modelVersionNum}",
        { path: { modelName: name, modelVersionNum: version }, signal })).modelVersion, () => null);
    if (live.data) return <Loaded key={live.data.id} v={live.data} again={live.again} />;
    return <><h1>Version {version} of <Name text={name} /></h1>{live.error ? <Problem error={live.error} what="The version" /> : <p class="soft">Asking…</p>}</>;
}
