/* What is written of a model: a new one, and its words. Only what was changed is sent. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { navigate } from "../../state/router";
import { FormDialog } from "../../ui/talk/dialog";
import { shown } from "../../ui/words/name";
import { labelsOf, modelAddress, type Model } from "./data";
import { MetadataField, replacing, textOf, type Words } from "./metadata";

export function NewModel({ close }: { close: () => void }) {
    const [name, setName] = useState(""), [description, setDescription] = useState(""), [labels, setLabels] = useState("");
    const save = async () => {
        await call("POST /api/v1/models", { body: { name, description, labels: labelsOf(labels) } });
        navigate(modelAddress(name));
    };
    return <FormDialog title="New model" button="Create" save={save} close={close}>
        <label>Name <input value={name} required onInput={(e) => setName(e.currentTarget.value)} /></label>
        <label>Description <textarea rows={3} value={description} onInput={(e) => setDescription(e.currentTarget.value)} /></label>
        <label>Labels, one a line <textarea rows={3} value={labels} onInput={(e) => setLabels(e.currentTarget.value)} /></label>
    </FormDialog>;
}

export function EditModel({ model, close, again }: { model: Model; close: () => void; again: () => void }) {
    const was = model.labels.join("\n"), [name, setName] = useState(model.name), [description, setDescription] = useState(model.description), [labels, setLabels] = useState(was);
    const [had] = useState(() => textOf(model.metadata as Words)), [metadata, setMetadata] = useState(had);
    const save = async () => {
        const body = { ...(name !== model.name ? { name } : {}), ...(description !== model.description ? { description } : {}), ...(labels !== was ? { labels: labelsOf(labels) } : {}),
            ...(metadata !== had ? { metadata: await replacing(had, metadata, async () => (await call("GET /api/v1/models/{modelName}", { path: { modelName: model.name } })).model.metadata as Words) } : {}) };
        if (!Object.keys(body).length) return;
        await call("PATCH /api/v1/models/{modelName}", { path: { modelName: model.name }, body });
        if (body.name) navigate(modelAddress(body.name), true);
        else again();
    };
    return <FormDialog title={`Edit ${shown(model.name)}`} button="Save" save={save} close={close}>
        <label>Name <input value={name} required onInput={(e) => setName(e.currentTarget.value)} /></label>
        <label>Description <textarea rows={3} value={description} onInput={(e) => setDescription(e.currentTarget.value)} /></label>
        <label>Labels, one a line <textarea rows={3} value={labels} onInput={(e) => setLabels(e.currentTarget.value)} /></label>
        <MetadataField text={metadata} set={setMetadata} />
    </FormDialog>;
}
