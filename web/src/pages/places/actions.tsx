/* What can be done with a workspace or a project, in its row and on its page alike. */
import { useState } from "preact/hooks";
import { call } from "../../api/client";
import { may } from "../../state/may";
import { attempt } from "../../ui/talk/attempt";
import { confirm } from "../../ui/talk/confirm";
import { FormDialog } from "../../ui/talk/dialog";
import { shown } from "../../ui/words/name";
import { word } from "../../ui/words/shell";
import { ofProject, ofWorkspace, type Project, type Workspace } from "./data";

interface ActionsProps {
    /* It is another now. */
    again: () => void;
    /* It is there no more. */
    gone: () => void;
}

/* As it is sent: what was left alone is null, so that it undoes nothing that somebody else wrote meanwhile. */
const changed = (was: string, is: string): string | null => (is === was ? null : is);

function EditWorkspace({ w, close, again }: { w: Workspace; close: () => void; again: () => void }) {
    const [was] = useState(w), [name, setName] = useState(w.name);
    const save = async () => {
        if (name !== was.name) await call("PATCH /api/v1/workspaces/{id}", { path: { id: w.id }, body: { name } });
        again();
    };
    return <FormDialog title={`Edit ${shown(was.name)}`} button="Save" save={save} close={close}>
        <label>Name <input value={name} required onInput={(e) => setName(e.currentTarget.value)} /></label>
    </FormDialog>;
}

function EditProject({ p, close, again }: { p: Project; close: () => void; again: () => void }) {
    const [was] = useState(p), [name, setName] = useState(p.name), [description, setDescription] = useState(p.description);
    const save = async () => {
        const body = { name: changed(was.name, name), description: changed(was.description, description) };
        if (body.name !== null || body.description !== null) await call("PATCH /api/v1/projects/{id}", { path: { id: p.id }, body });
        again();
    };
    return <FormDialog title={`Edit ${shown(was.name)}`} button="Save" save={save} close={close}>
        <label>Name <input value={name} required onInput={(e) => setName(e.currentTarget.value)} /></label>
        <label>Description <textarea rows={3} value={description} onInput={(e) => setDescription(e.currentTarget.value)} /></label>
    </FormDialog>;
}

export function WorkspaceActions({ w, again, gone }: { w: Workspace } & ActionsProps) {
    const [isEditing, setEditing] = useState(false), path = { id: w.id }, command = (verb: string) => `det workspace ${verb} ${word(w.name)}`;
    if (w.immutable || !may("place", ofWorkspace(w))) return null;
    const archive = async () => {
        await attempt("Not changed", () => (w.archived ? call("POST /api/v1/workspaces/{id}/unarchive", { path }) : call("POST /api/v1/workspaces/{id}/archive", { path })));
        again();
    };
    const remove = async () => {
        if (!await confirm(`Delete the workspace ${shown(w.name)}? It must be empty; roles given in it are gone then.`, "Delete", command("delete"))) return;
        if (await attempt("Not deleted", () => call("DELETE /api/v1/workspaces/{id}", { path }), `The workspace ${shown(w.name)} is deleted.`)) gone();
    };
    return <>
        <button type="button" aria-label={`Edit… ${shown(w.name)}`} title={`${command("edit")} --name NAME`} onClick={() => setEditing(true)}>Edit…</button>
        <button type="button" aria-label={`${w.archived ? "Unarchive" : "Archive"} ${shown(w.name)}`} title={command(w.archived ? "unarchive" : "archive")} onClick={() => void archive()}>{w.archived ? "Unarchive" : "Archive"}</button>
        <button type="button" aria-label={`Delete ${shown(w.name)}`} title={command("delete")} onClick={() => void remove()}>Delete</button>
        {isEditing && <EditWorkspace w={w} close={() => setEditing(false)} again={again} />}
    </>;
}

/* `host`: the workspace that it is in. */
export function ProjectActions({ p, host, again, gone }: { p: Project; host: Workspace } & ActionsProps) {
    const [isEditing, setEditing] = useState(false), path = { id: p.id }, command = (verb: string) => `det project ${verb} ${word(host.name)} ${word(p.name)}`;
    if (p.immutable || !may("place", ofProject(p, host))) return null;
    const archive = async () => {
        await attempt("Not changed", () => (p.archived ? call("POST /api/v1/projects/{id}/unarchive", { path }) : call("POST /api/v1/projects/{id}/archive", { path })));
        again();
    };
    const remove = async () => {
        if (!await confirm(`Delete the project ${shown(p.name)}? It must be empty: its experiments are moved or deleted first.`, "Delete", command("delete"))) return;
        if (await attempt("Not deleted", () => call("DELETE /api/v1/projects/{id}", { path }), `The project ${shown(p.name)} is deleted.`)) gone();
    };
    return <>
        <button type="button" aria-label={`Edit… ${shown(p.name)}`} title={`${command("edit")} --new_name NAME --description TEXT`} onClick={() => setEditing(true)}>Edit…</button>
        <button type="button" aria-label={`${p.archived ? "Unarchive" : "Archive"} ${shown(p.name)}`} title={command(p.archived ? "unarchive" : "archive")} onClick={() => void archive()}>{p.archived ? "Unarchive" : "Archive"}</button>
        <button type="button" aria-label={`Delete ${shown(p.name)}`} title={command("delete")} onClick={() => void remove()}>Delete</button>
        {isEditing && <EditProject p={p} close={() => setEditing(false)} again={again} />}
    </>;
}
