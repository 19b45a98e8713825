/* An experiment that has ended goes on, as it was or with changes of its configuration. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { FormDialog } from "../../ui/talk/dialog";
import "../../ui/editor/editor.css";
import type { Experiment } from "./data";

const HINT = "searcher:\n  max_length:\n    batches: 1000";

export function ContinueDialog({ exp, close, again }: { exp: Experiment; close: () => void; again: () => void }) {
    const [text, setText] = useState("");
    const save = async () => {
        await call("POST /api/v1/experiments/continue", { body: { id: exp.id, ...(text.trim() ? { overrideConfig: text } : {}) } });
        again();
    };
    return <FormDialog title={`Continue experiment ${exp.id}`} button="Continue" save={save} close={close}>
        <p>Its trials go on from their latest checkpoints. A single search may be changed, e.g. trained for longer.</p>
        <label>Changes of the configuration, as YAML (none: as it was)
            <textarea rows={6} value={text} placeholder={HINT} spellcheck={false} onInput={(e) => setText(e.currentTarget.value)} /></label>
        <p class="soft">The same as <code>det experiment continue {exp.id}{text.trim() ? " --config-file CHANGES.yaml" : ""}</code></p>
    </FormDialog>;
}
