/* The reader's views, beside every page: a name, which leads to what was seen when it was saved. */
import { useEffect, useState } from "preact/hooks";
import { path, query } from "../state/router";
import { dropView, keepView, readViews, views, type View } from "../state/views";
import { confirm } from "./confirm";
import { FormDialog } from "./dialog";
import { Name, shown } from "./name";
import { toast } from "./toasts";

const NAME_MAX = 60;

function here(): string {
    const text = query.value.toString();
    return text ? `${path.value}?${text}` : path.value;
}

function Save({ close }: { close: () => void }) {
    const [name, setName] = useState(""), isThere = views.value.some((v) => v.name === name.trim());
    const save = async () => {
        await keepView(name, here());
        toast(`Saved as “${shown(name.trim())}”. Its link shows the same to others.`);
    };
    return <FormDialog title="Save this view" button={isThere ? "Replace" : "Save"} save={save} close={close}>
        <label>Name <input value={name} required maxLength={NAME_MAX} pattern=".*\S.*" onInput={(e) => setName(e.currentTarget.value)} /></label>
        <p class="soft">What is seen now: <code>{shown(here())}</code></p>
        <p class="soft">The list of views is yours alone; whoever gets a view as a link, by copying its address, sees the same.</p>
    </FormDialog>;
}

async function drop(v: View): Promise<void> {
    if (!await confirm(`Forget the view “${shown(v.name)}”?`, "Forget")) return;
    await dropView(v.name).catch((e: Error) => toast(`Not forgotten: ${e.message}`, true));
}

export function Views() {
    const [isSaving, setSaving] = useState(false), now = here();
    useEffect(() => {
        views.value = []; // who was signed in before may have been somebody else
        void readViews().catch(() => undefined); // that the master does not answer is told above
    }, []);
    return <nav class="views" aria-label="Views">
        <span class="soft">Views</span>
        {views.value.map((v) => <span key={v.name} class="view"><a href={v.address} aria-current={v.address === now ? "page" : undefined}><Name text={v.name} /></a>
            <button type="button" class="plain" aria-label={`Forget the view ${shown(v.name)}`} onClick={() => void drop(v)}>×</button></span>)}
        <button type="button" class="plain" onClick={() => setSaving(true)}>Save this view…</button>
        {isSaving && <Save close={() => setSaving(false)} />}
    </nav>;
}
