/* A checkpoint becomes the next version of a model, of one that is there or of a new one. */
import { useRef, useState } from "preact/hooks";
import { call } from "../../api/client";
import { useLive } from "../../state/live";
import { FormDialog } from "../../ui/talk/dialog";
import { shown } from "../../ui/words/name";
import { toast } from "../../ui/talk/toasts";
import { askModels, labelsOf, MODELS_VIEW } from "./data";

export function RegisterDialog({ uuid, close }: { uuid: string; close: () => void }) {
    const models = useLive("models to choose", "", (signal) => askModels(MODELS_VIEW, true, signal), () => null).data?.rows ?? [];
    const [model, setModel] = useState(""), [fresh, setFresh] = useState(""), [name, setName] = useState(""), [comment, setComment] = useState(""), [labels, setLabels] = useState("");
    const made = useRef(""); // a second try need not make it again
    const save = async () => {
        const of = model || fresh;
        if (!model && made.current !== of) await call("POST /api/v1/models", { body: { name: of } });
        made.current = of;
        const r = await call("POST /api/v1/models/{modelName}/versions", { path: { modelName: of }, body: { checkpointUuid: uuid, name, comment, labels: labelsOf(labels) } });
        toast(`It is version ${r.modelVersion.version} of ${shown(of)} now.`);
    };
    return <FormDialog title="Register a checkpoint" button="Register" save={save} close={close}>
        <p class="soft"><code>{uuid}</code></p>
        <label>Model <select value={model} onChange={(e) => setModel(e.currentTarget.value)}><option value="">a new one</option>{models.map((m) => <option key={m.id} value={m.name}>{shown(m.name)}</option>)}</select></label>
        {!model && <label>Name of the new one <input value={fresh} required onInput={(e) => setFresh(e.currentTarget.value)} /></label>}
        <label>Name of the version <input value={name} onInput={(e) => setName(e.currentTarget.value)} /></label>
        <label>Comment <input value={comment} onInput={(e) => setComment(e.currentTarget.value)} /></label>
        <label>Labels, one a line <textarea rows={2} value={labels} onInput={(e) => setLabels(e.currentTarget.value)} /></label>
    </FormDialog>;
}
