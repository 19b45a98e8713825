/* Templates: parts of configurations that experiments are made with. Written as YAML, kept as what it says. */
import { useState } from "preact/hooks";
import { parse, stringify } from "yaml";
import { call, type Messages } from "../../api/client";
import { useLive } from "../../state/live";
import { may, maySomewhere, type Of } from "../../state/may";
import { isWhole, limitOf, partOf } from "../../state/part";
import { attempt } from "../../ui/talk/attempt";
import { confirm } from "../../ui/talk/confirm";
import { Yaml } from "../../ui/editor/editor";
import { Cut } from "../../ui/table/cut";
import { count } from "../../ui/words/format";
import { Grid } from "../../ui/table/grid";
import { Name, shown } from "../../ui/words/name";
import { word } from "../../ui/words/shell";
import { toast } from "../../ui/talk/toasts";
import { askWorkspaces, type Workspace } from "../places/data";
import { Problem } from "../problem";

type Template = Messages["template.v1.Template"];
const LIVE_MS = 5000, SPACES_MS = 30_000, BEGIN = "resources:\n  slots_per_trial: 1\n";

/* What a text says; a mistake in it is told at its line. */
export function configOf(text: string): Record<string, unknown> {
    const config: unknown = parse(text);
    if (typeof config !== "object" || config === null || Array.isArray(config)) throw new Error("a template has keys, as an experiment's configuration has");
    return config as Record<string, unknown>;
}

const inPlace = (w: Workspace): Of => ({ workspaceId: w.id, hostId: w.userId });
/* Of what is not among those that are known, the workspace alone counts. */
const ofTemplate = (t: Template, all: Workspace[]): Of => ({ workspaceId: t.workspaceId, hostId: all.find((w) => w.id === t.workspaceId)?.userId });

/* Begun with what the template says now; null: a new one, in one of `places`. */
function Writing({ template, places, done }: { template: Template | null; places: Workspace[]; done: () => void }) {
    const [name, setName] = useState(template?.name ?? ""), [text, setText] = useState(() => (template ? stringify(template.config) : BEGIN));
    const [place, setPlace] = useState(places[0]?.id ?? 1);
    const [error, setError] = useState("");
    const save = async () => {
        try {
            const config = configOf(text), path = { "template.name": name };
            if (template) await call("PATCH /api/v1/templates/{templateName}", { path: { templateName: template.name }, body: config });
            else await call("POST /api/v1/templates/{template.name}", { path, body: { name, config, workspaceId: place } });
            toast(`The template ${shown(name)} is kept.`);
            done();
        } catch (e) {
            setError((e as Error).message);
        }
    };
    return <section class="panel create" aria-label="Template">
        {template ? <h2><Name text={template.name} /></h2> : <label class="field">Name <input value={name} onInput={(e) => setName(e.currentTarget.value)} /></label>}
        {!template && places.length > 1 && <label class="field">Workspace, whose members may change it <select value={place} onChange={(e) => setPlace(Number(e.currentTarget.value))}>
            {places.map((w) => <option key={w.id} value={w.id}>{shown(w.name)}</option>)}</select></label>}
        <Yaml label="What it says" text={text} onChange={setText} onSubmit={() => void save()} mistakes={[]} />
        <p class="error" role="alert">{error}</p>
        <div class="row"><button type="button" class="main" disabled={!name} onClick={() => void save()}>Save</button><button type="button" onClick={done}>Not now</button></div>
    </section>;
}

async function remove(t: Template, again: () => void): Promise<void> {
    if (!await confirm(`Delete the template ${shown(t.name)}? Experiments made with it keep what they were made of.`, "Delete", `det template remove ${word(t.name)}`)) return;
    await attempt("Not deleted", () => call("DELETE /api/v1/templates/{templateName}", { path: { templateName: t.name } }));
    again();
}

export function TemplatesPage() {
    const [open, setOpen] = useState<Template | "new" | null>(null);
    const live = useLive("all templates", String(isWhole()), async (signal) => {
        const r = await call("GET /api/v1/templates", { query: { limit: limitOf(isWhole()) }, signal });
        return partOf(r.templates, r.pagination);
    }, () => LIVE_MS);
    const spaces = useLive("workspaces of templates", "", async (signal) => (await askWorkspaces(true, signal)).rows, () => SPACES_MS), all = spaces.data ?? [];
    const places = all.filter((w) => !w.archived && may("create", inPlace(w)));
    const done = () => {
        setOpen(null);
        live.again();
    };
    return <>
        <div class="head"><h1>Templates</h1><span class="soft">{count(live.data?.total ?? 0, "template")}</span>
            <span class="row push">{maySomewhere("create") && places.length > 0 && <button type="button" title="det template create NAME FILE" onClick={() => setOpen("new")}>New template…</button>}</span></div>
        <Problem error={live.error} what="The templates" />
        {open && <Writing key={open === "new" ? "" : open.name} template={open === "new" ? null : open} places={places} done={done} />}
        <Cut part={live.data} one="template" />
        {live.data && <Grid name="Templates" rows={live.data.rows} keyOf={(t) => t.name} none="There is no template yet." columns={[
            { head: "template", cell: (t) => <Name text={t.name} /> }, { head: "sets", cell: (t) => <Name text={Object.keys(t.config).join(", ") || "nothing"} /> },
            { head: "workspace", cell: (t) => <Name text={all.find((w) => w.id === t.workspaceId)?.name ?? `${t.workspaceId}`} /> },
            { head: "", cell: (t) => <>{may("edit", ofTemplate(t, all)) && <button type="button" onClick={() => setOpen(t)}>Edit…</button>}{may("delete", ofTemplate(t, all)) && <button type="button" onClick={() => void remove(t, live.again)}>Delete</button>}</> },
        ]} />}
    </>;
}
