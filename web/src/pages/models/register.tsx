/* A checkpoint becomes the next version of a model, of one that is there or of a new one. */
import { useRef, useState } from "preact/hooks";
import { call } from "../../api/client";
import { useLive } from "../../state/live";
import { FormDialog } from "../../ui/talk/dialog";
import { shown } from "../../ui/words/name";
import { toast } from "../../ui/talk/toasts";
import { askModels, MODELS_VIEW } from "./data";

export function RegisterDialog({ uuid, close }: { uuid: string; close: () => void }) {
    const models = useLive("models to choose", "", (signal) => askModels(MODELS_VIEW, true, signal), () => null).data?.rows ?? [];
    const [model, setModel] = useState(""), [fresh, setFresh] = useState(""), [comment, setComment] = useState("");
    const made = useRef(""); // a second try need not make it again
    const save = async () => {
        const name = model || fresh;
        if (!model && made.current !== name) await call("POST /api/v1/models", { body: { name } });
        made.current = name;
        const r = await call("POST /api/v1/models/{modelName}/versions", { path: { modelName: name }, body: { checkpointUuid: uuid, comment } });
        toast(`It is version ${r.modelVersion.version} of ${shown(name)} now.`);
    };
    return <FormDialog title="Register a checkpoint" button="Register" save={save} close={close}>
        <p class="soft"><code>{uuid}</code></p>
        <label>Model <select value={model} onChange={(e) => setModel(e.currentTarget.value)}><option value="">a new one</option>{models.map((m) => <option key={m.id} value={m.name}>{shown(m.name)}</option>)}</select></label>
        {!model && <label>Name of the new one <input value={fresh} required onInput={(e) => setFresh(e.currentTarget.value)} /></label>}
        <label>Comment <input value={comment} onInput={(e) => setComment(e.currentTarget.value)} /></label>
    </FormDialog>;
}
