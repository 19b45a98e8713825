/* What people call an experiment: its name, description and labels. Only what was changed is sent. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { FormDialog } from "../../ui/talk/dialog";
import "../../ui/editor/editor.css";
import type { Experiment } from "./data";

const labelsOf = (text: string): string[] => [...new Set(text.split("\n").map((l) => l.trim()).filter(Boolean))];

export interface Words { name: string; description: string; labels: string }

export function wordsOf(e: Experiment): Words {
    return { name: e.name, description: e.description, labels: e.labels.join("\n") };
}

/* null: nothing was changed. */
export function changesOf(was: Words, is: Words): { name?: string; description?: string; labels?: string[] } | null {
    const change = { ...(is.name !== was.name ? { name: is.name } : {}), ...(is.description !== was.description ? { description: is.description } : {}),
        ...(is.labels !== was.labels ? { labels: labelsOf(is.labels) } : {}) };
    return Object.keys(change).length ? change : null;
}

export function EditDialog({ exp, close, again }: { exp: Experiment; close: () => void; again: () => void }) {
    const [was] = useState(() => wordsOf(exp)), [is, setIs] = useState(was);
    const save = async () => {
        const change = changesOf(was, is);
        if (!change) return;
        await call("PATCH /api/v1/experiments/{experiment.id}", { path: { "experiment.id": exp.id }, body: { id: exp.id, ...change } });
        again();
    };
    const set = (change: Partial<Words>) => setIs({ ...is, ...change });
    return <FormDialog title={`Edit experiment ${exp.id}`} button="Save" save={save} close={close}>
        <label>Name <input value={is.name} required onInput={(e) => set({ name: e.currentTarget.value })} /></label>
        <label>Description <textarea rows={3} value={is.description} onInput={(e) => set({ description: e.currentTarget.value })} /></label>
        <label>Labels, one a line <textarea rows={4} value={is.labels} onInput={(e) => set({ labels: e.currentTarget.value })} /></label>
    </FormDialog>;
}
