/* The notes of a thing: Markdown, read and written. */
import { useEffect, useRef, useState } from "preact/hooks";
import { draftOf, keepDraft } from "../state/drafts";
import "./editor.css";
import "./notes.css";
import { toast } from "./toasts";

/* As plain text until what draws it has come, or where it does not come. */
export function Markdown({ text }: { text: string }) {
    const ref = useRef<HTMLDivElement>(null), [isDrawn, setDrawn] = useState(false);
    useEffect(() => {
        let isMine = true;
        import("./markdown").then(({ markdown }) => {
            if (!isMine) return;
            ref.current!.replaceChildren(markdown(text));
            setDrawn(true);
        }, () => undefined);
        return () => { isMine = false; };
    }, [text]);
    return <><div ref={ref} class="notes" hidden={!isDrawn} />{!isDrawn && <pre class="text">{text}</pre>}</>;
}

export interface NotesProps {
    /* Under which what is typed is kept in this tab. */
    draft: string;
    notes: string;
    /* What the master has at this moment. */
    ask: () => Promise<string>;
    save: (text: string) => Promise<unknown>;
    again: () => void;
}

/* Who saved meanwhile is not written over without a word. */
function Writing({ draft, notes, ask, save, again, done }: NotesProps & { done: () => void }) {
    const [text, setText] = useState(() => draftOf(draft) ?? notes), [isBusy, setBusy] = useState(false), [base, setBase] = useState(notes);
    const leave = () => {
        keepDraft(draft, null);
        done();
    };
    const send = async () => {
        setBusy(true);
        try {
            const there = await ask();
            if (there !== base) {
                setBase(there);
                throw new Error("somebody else has changed them meanwhile; Save again to replace theirs, or copy yours and cancel");
            }
            await save(text);
            again();
            leave();
        } catch (e) {
            toast(`Notes not saved: ${(e as Error).message}`, true);
            setBusy(false);
        }
    };
    const type = (t: string) => {
        setText(t);
        keepDraft(draft, t);
    };
    return <section class="panel" aria-label="Notes">
        <textarea aria-label="Notes, in Markdown" rows={14} value={text} onInput={(e) => type(e.currentTarget.value)} />
        <div class="row"><button type="button" class="main" disabled={isBusy} onClick={() => void send()}>Save</button>
            <button type="button" onClick={leave}>Cancel</button></div>
        <h2>As it will be shown</h2>
        <Markdown text={text} />
    </section>;
}

export function Notes(p: NotesProps) {
    const [isWriting, setWriting] = useState(() => draftOf(p.draft) !== null);
    if (isWriting) return <Writing {...p} done={() => setWriting(false)} />;
    return <section class="panel" aria-label="Notes">
        <header><h2>Notes</h2><button type="button" class="push" onClick={() => setWriting(true)}>Edit notes</button></header>
        {p.notes ? <Markdown text={p.notes} /> : <p class="soft">No notes.</p>}
    </section>;
}
