/* The notes of an experiment: Markdown, read and written. */
import { useEffect, useRef, useState } from "preact/hooks";
import { call } from "../../api/client";
import { draftOf, keepDraft } from "../../state/drafts";
import "../../ui/editor.css";
import "../../ui/notes.css";
import { toast } from "../../ui/toasts";
import type { Experiment } from "./data";

/* As plain text until what draws it has come, or where it does not come. */
export function Markdown({ text }: { text: string }) {
    const ref = useRef<HTMLDivElement>(null), [isDrawn, setDrawn] = useState(false);
    useEffect(() => {
        let isMine = true;
        import("../../ui/markdown").then(({ markdown }) => {
            if (!isMine) return;
            ref.current!.replaceChildren(markdown(text));
            setDrawn(true);
        }, () => undefined);
        return () => { isMine = false; };
    }, [text]);
    return <><div ref={ref} class="notes" hidden={!isDrawn} />{!isDrawn && <pre class="text">{text}</pre>}</>;
}

async function notesNow(id: number): Promise<string> {
    return (await call("GET /api/v1/experiments/{experimentId}", { path: { experimentId: id } })).experiment.notes;
}

interface WritingProps { exp: Experiment; done: () => void; again: () => void }

/* Who saved meanwhile is not written over without a word. */
function Writing({ exp, done, again }: WritingProps) {
    const key = `notes.${exp.id}`, [text, setText] = useState(() => draftOf(key) ?? exp.notes), [isBusy, setBusy] = useState(false);
    const [base, setBase] = useState(exp.notes);
    const leave = () => {
        keepDraft(key, null);
        done();
    };
    const save = async () => {
        setBusy(true);
        try {
            const there = await notesNow(exp.id);
            if (there !== base) {
                setBase(there);
                throw new Error("somebody else has changed them meanwhile; Save again to replace theirs, or copy yours and cancel");
            }
            await call("PATCH /api/v1/experiments/{experiment.id}", { path: { "experiment.id": exp.id }, body: { id: exp.id, notes: text } });
            again();
            leave();
        } catch (e) {
            toast(`Notes not saved: ${(e as Error).message}`, true);
            setBusy(false);
        }
    };
    const type = (t: string) => {
        setText(t);
        keepDraft(key, t);
    };
    return <section class="panel" aria-label="Notes">
        <textarea aria-label="Notes, in Markdown" rows={14} value={text} onInput={(e) => type(e.currentTarget.value)} />
        <div class="row"><button type="button" class="main" disabled={isBusy} onClick={() => void save()}>Save</button>
            <button type="button" onClick={leave}>Cancel</button></div>
        <h2>As it will be shown</h2>
        <Markdown text={text} />
    </section>;
}

export function Notes({ exp, again }: { exp: Experiment; again: () => void }) {
    const [isWriting, setWriting] = useState(() => draftOf(`notes.${exp.id}`) !== null);
    if (isWriting) return <Writing exp={exp} done={() => setWriting(false)} again={again} />;
    return <section class="panel" aria-label="Notes">
        <header><h2>Notes</h2><button type="button" class="push" onClick={() => setWriting(true)}>Edit notes</button></header>
        {exp.notes ? <Markdown text={exp.notes} /> : <p class="soft">No notes.</p>}
    </section>;
}
