/* Views, beside every page: the reader's own and those that others show; a name leads to what was seen when it was saved. */
import { useEffect, useState } from "preact/hooks";
import { me } from "../state/session";
import { path, query } from "../state/router";
import { changesOf, changeView, deleteView, isOurs, linkOf, ownNamed, readPlaces, readViews, saveView, views, type View } from "../state/views";
import { attempt } from "./talk/attempt";
import { confirm } from "./talk/confirm";
import { FormDialog } from "./talk/dialog";
import { count } from "./words/format";
import { Name, shown } from "./words/name";
import { toast } from "./talk/toasts";

const NAME_MAX = 60;

function here(): string {
    const text = query.value.toString();
    return text ? `${path.value}?${text}` : path.value;
}

const read = (all?: boolean) => readViews(me.value?.id, all);
/* Whose it is, and where it is shown. */
function placeOf(v: View): string {
    if (v.userId !== me.value?.id) return `${shown(v.username)}, in ${shown(v.workspaceName)}`;
    return v.workspaceId ? `shown in ${shown(v.workspaceName)}` : "";
}

function NameField({ name, set }: { name: string; set: (name: string) => void }) {
    return <label>Name <input value={name} required maxLength={NAME_MAX} pattern=".*\S.*" onInput={(e) => set(e.currentTarget.value)} /></label>;
}

/* Who else sees it: nobody, or who looks at one of the workspaces. */
function ShownField({ at, of, set }: { at: number; of?: View; set: (id: number) => void }) {
    const [places, setPlaces] = useState(of?.workspaceId ? [{ id: of.workspaceId, name: of.workspaceName }] : []);
    useEffect(() => void readPlaces().then(setPlaces, () => undefined), []); // that the master does not answer is told above
    const all = at && !places.some((p) => p.id === at) && of ? [...places, { id: at, name: of.workspaceName }] : places;
    return <label>Shown to <select value={at} onChange={(e) => set(Number(e.currentTarget.value))}>
        <option value={0}>nobody else</option>
        {all.map((p) => <option key={p.id} value={p.id}>everybody, in {shown(p.name)}</option>)}
    </select></label>;
}

function Save({ close }: { close: () => void }) {
    const [name, setName] = useState(""), [chosen, setAt] = useState<number | null>(null), same = ownNamed(name);
    const at = chosen ?? same?.workspaceId ?? 0; // one that is replaced stays where it is shown
    const save = async () => {
        const { view } = await saveView({ name: name.trim(), address: here(), workspaceId: at });
        await read();
        toast(`Saved as “${shown(view.name)}”. ${at ? `Its link: ${location.origin}${linkOf(view)}` : "Nobody else sees it."}`);
    };
    return <FormDialog title="Save this view" button={same ? "Replace" : "Save"} save={save} close={close}>
        <NameField name={name} set={setName} />
        <ShownField at={at} {...(same ? { of: same } : {})} set={setAt} />
        <p class="soft">What is seen now: <code>{shown(here())}</code></p>
    </FormDialog>;
}

function Change({ view, close }: { view: View; close: () => void }) {
    const [name, setName] = useState(view.name), [at, setAt] = useState(view.workspaceId), [isNow, setNow] = useState(false);
    const save = async () => {
        await changeView(view.id, changesOf(view, { name: name.trim(), workspaceId: at, ...(isNow ? { address: here() } : {}) }));
        await read();
    };
    const drop = async () => {
        close();
        if (!await confirm(`Delete the view “${shown(view.name)}”?${view.workspaceId ? " Its link will lead nowhere." : ""}`, "Delete")) return;
        await attempt("Not deleted", async () => { await deleteView(view.id); await read(); });
    };
    return <FormDialog title="Change a view" button="Keep" save={save} close={close}>
        <NameField name={name} set={setName} />
        <ShownField at={at} of={view} set={setAt} />
        <label class="tick"><input type="checkbox" checked={isNow} onChange={(e) => setNow(e.currentTarget.checked)} />Let it show what is seen now</label>
        <p class="soft">{at ? "A link to it: " : "A link to it, for nobody else: "}<code>{location.origin}{linkOf(view)}</code></p>
        <p><button type="button" onClick={() => void drop()}>Delete this view</button></p>
    </FormDialog>;
}

function Entry({ view, change }: { view: View; change?: () => void }) {
    const tells = placeOf(view);
    return <span class="view"><a href={view.address} aria-current={view.address === here() ? "page" : undefined}><Name text={view.name} />
        {tells && <span class="soft view-place">{tells}</span>}</a>
        {change && <button type="button" class="plain" aria-label={`Change the view ${shown(view.name)}`} onClick={change}>…</button>}</span>;
}

/* An administrator changes those of others too; everybody else is told by the master who may. */
export function Views() {
    const [open, setOpen] = useState<View | "new" | null>(null), { own, shown: others, more } = views.value;
    useEffect(() => {
        views.value = { own: [], shown: [], more: 0 }; // who was signed in before may have been somebody else
        void read(false).catch(() => undefined); // that the master does not answer is told above
    }, []);
    return <nav class="views" aria-label="Views">
        <span class="soft">Views</span>
        {own.map((v) => <Entry key={v.id} view={v} change={() => setOpen(v)} />)}
        {others.length > 0 && <details class="view-others"><summary class="soft">Shown by others ({others.length + more})</summary>
            {others.map((v) => <Entry key={v.id} view={v} {...(me.value?.admin ? { change: () => setOpen(v) } : {})} />)}
            </details>}
        {more > 0 && <button type="button" class="plain" onClick={() => void attempt("Not read", () => read(true))}>Show {count(more, "more view")}</button>}
        {isOurs(path.value) && <button type="button" class="plain" onClick={() => setOpen("new")}>Save this view…</button>}
        {open === "new" && <Save close={() => setOpen(null)} />}
        {open && open !== "new" && <Change key={open.id} view={open} close={() => setOpen(null)} />}
    </nav>;
}
