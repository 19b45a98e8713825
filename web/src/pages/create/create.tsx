/* A new experiment, or the fork of one: its YAML, marked by the master's own schema while it is typed, and its files. */
import { useEffect, useRef, useState } from "preact/hooks";
import { ApiError, call } from "../../api/client";
import { draftOf, keepDraft } from "../../state/drafts";
import { idsOf } from "../../state/address";
import { maySomewhere } from "../../state/may";
import { useLive } from "../../state/live";
import { navigate, query } from "../../state/router";
import { Yaml } from "../../ui/editor/editor";
import { bytes, count } from "../../ui/words/format";
import { OnlyLook } from "../../ui/look";
import { Name } from "../../ui/words/name";
import "../../ui/parts.css";
import { toast } from "../../ui/talk/toasts";
import { BEGIN, forkText, judged, made, type Verdict, type Wanted } from "./data";
import type { Experiment } from "../experiment/data";
import { chosenOf, packed, sizeOf, type Chosen } from "./model_files";
import { Problem } from "../problem";
import type { Warm } from "./warm";

const TYPED_MS = 300;

/* What the master says of what is typed, when the keys rest; null: it has not said anything yet. */
function useVerdict(w: Wanted): Verdict | null {
    const [verdict, setVerdict] = useState<Verdict | null>(null);
    useEffect(() => {
        const stop = new AbortController();
        const timer = setTimeout(() => judged(w, stop.signal).then(setVerdict, (e: unknown) => {
            if (!stop.signal.aborted && !(e instanceof ApiError)) throw e; // that it does not answer is told above the page
        }), TYPED_MS);
        return () => {
            clearTimeout(timer);
            stop.abort();
        };
    }, [w.text, w.template, w.parent, w.project]);
    return verdict;
}

function Files({ files, set }: { files: Chosen[]; set: (files: Chosen[]) => void }) {
    const ref = useRef<HTMLInputElement>(null);
    useEffect(() => ref.current!.setAttribute("webkitdirectory", ""), []);
    return <div class="field">
        <label>Folder with the model's code{" "}
            <input ref={ref} type="file" multiple onChange={(e) => set(chosenOf(e.currentTarget.files ?? []))} /></label>
        <span class="soft" role="status">{files.length ? `${count(files.length, "file")}, ${bytes(sizeOf(files))}` : "No files yet: an entrypoint that is a command needs none."}</span>
        {files.length > 0 && <details><summary>Which</summary><ul class="choices">{files.map((f) => <li key={f.path}><Name text={f.path} /> <span class="soft">{bytes(f.size)}</span></li>)}</ul></details>}
    </div>;
}

function Template({ name, set }: { name: string; set: (name: string) => void }) {
    const live = useLive("templates", "", async (signal) => (await call("GET /api/v1/templates", { signal })).templates ?? [], () => null);
    if (!live.data?.length) return null;
    return <label class="quiet">Template <select value={name} onChange={(e) => set(e.currentTarget.value)}>
        <option value="">none</option>{live.data.map((t) => <option key={t.name} value={t.name}>{t.name}</option>)}</select></label>;
}

function Said({ verdict }: { verdict: Verdict | null }) {
    if (!verdict) return <p class="soft" role="status">Asking the master what it thinks of it…</p>;
    const n = verdict.mistakes.length;
    return <>
        <p role="status" class={n ? "error" : "soft"}>{n ? `${count(n, "mistake")}: it would not be taken.` : "The master would take it."}</p>
        {verdict.advice.map((a) => <p key={a} class="why"><Name text={a} /></p>)}
    </>;
}

/* Whether the trials begin with these weights is what the text says now; one whose searcher stands elsewhere does not say it by itself. */
function Begins({ warm, text }: { warm: Warm; text: string }) {
    const [says, setSays] = useState<{ is: boolean; line: string } | null>(null);
    useEffect(() => {
        let isOver = false;
        void import("./warm").then(({ isWarm, sourceLine }) => { if (!isOver) setSays({ is: isWarm(text, warm), line: sourceLine(warm) }); });
        return () => { isOver = true; };
    }, [text, warm.trial, warm.checkpoint]);
    if (!says) return null;
    if (says.is) return <p>Its trials begin with the weights of {sourceOf(warm)}, at batch 0.</p>;
    return <p class="error" role="alert">Its trials would not begin with the weights of {sourceOf(warm)}: the configuration does not say so. Write <code>{says.line}</code> below <code>searcher:</code>.</p>;
}

/* A draft of before goes before what the form would begin with. */
function Form({ begin, parent, warm = null }: { begin: string; parent: Experiment | null; warm?: Warm | null }) {
    const key = parent ? `fork.${parent.id}${warm ? ` with ${sourceOf(warm)}` : ""}` : "new";
    const [text, setText] = useState(() => draftOf(key) ?? begin), [template, setTemplate] = useState("");
    const [files, setFiles] = useState<Chosen[]>([]), [isPaused, setPaused] = useState(false), [busy, setBusy] = useState(false);
    const [round, setRound] = useState(0), wanted = { text, template, parent: parent?.id ?? 0, project: parent?.projectId ?? 0 }, verdict = useVerdict(wanted);
    const type = (t: string) => {
        setText(t);
        keepDraft(key, t === begin ? null : t);
    };
    const submit = async () => {
        if (busy) return;
        setBusy(true);
        try {
            const e = await made(wanted, parent ? [] : await packed(files), !isPaused);
            keepDraft(key, null);
            navigate(`/det/experiments/${e.id}`);
        } catch (e) {
            toast(`Not created: ${(e as Error).message}`, true);
            setBusy(false);
        }
    };
    const again = () => {
        type(begin);
        setRound(round + 1);
    };
    return <div class="create">
        {warm && <Begins warm={warm} text={text} />}
        <Yaml key={round} label="Configuration" text={text} onChange={type} onSubmit={() => void submit()} mistakes={verdict?.mistakes ?? []} />
        <Said verdict={verdict} />
        {parent ? <p class="soft">Its files are those of experiment {parent.id}.</p> : <Files files={files} set={setFiles} />}
        <div class="row">
            <Template name={template} set={setTemplate} />
            <label class="quiet"><input type="checkbox" checked={isPaused} onChange={(e) => setPaused(e.currentTarget.checked)} /> begin paused</label>
            <button type="button" class="main" disabled={busy || !maySomewhere("create")} title="Ctrl-Enter in the editor" onClick={() => void submit()}>{busy ? "Sending…" : "Create"}</button>
            {text !== begin && <button type="button" onClick={again}>Begin anew</button>}
        </div>
        {!maySomewhere("create") && <OnlyLook what="experiments" who="a role in a workspace: Editor, for one" />}
        {!parent && <p class="soft">The same as <code>det experiment create CONFIG.yaml FOLDER</code></p>}
    </div>;
}

/* What its trials begin with, in the reader's words; "": with nothing. */
const sourceOf = ({ trial, checkpoint }: Warm): string => (checkpoint ? `checkpoint ${checkpoint}` : trial ? `the latest checkpoint of trial ${trial}` : "");

async function begins(id: number, warm: Warm, signal: AbortSignal): Promise<{ of: Experiment; text: string }> {
    const of = (await call("GET /api/v1/experiments/{experimentId}", { path: { experimentId: id }, signal })).experiment, text = forkText(of);
    return { of, text: sourceOf(warm) ? (await import("./warm")).warmText(text, warm) : text };
}

function Fork({ id, warm }: { id: number; warm: Warm }) {
    const source = sourceOf(warm), live = useLive(`fork of ${id}`, "", (signal) => begins(id, warm, signal), () => null), got = live.data;
    return <>
        <div class="head"><h1>{source ? "Warm start, as " : "Fork of "}<a href={`/det/experiments/${id}`}>{got ? <Name text={got.of.name} /> : "experiment"} #{id}</a></h1></div>
        <Problem error={live.error} what="The experiment" />
        {got && <Form begin={got.text} parent={got.of} warm={source ? warm : null} />}
    </>;
}

export function CreatePage() {
    const q = query.value, from = idsOf(q.get("from"))[0], checkpoint = q.get("checkpoint") ?? "";
    const warm = { trial: idsOf(q.get("trial"))[0] ?? 0, checkpoint: /^[0-9a-f-]{36}$/i.test(checkpoint) ? checkpoint : "" };
    if (from) return <Fork key={`${from} ${sourceOf(warm)}`} id={from} warm={warm} />;
    return <><div class="head"><h1>New experiment</h1></div><Form begin={BEGIN} parent={null} /></>;
}
