/* The notes of a thing: Markdown, read and written. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { draftOf, keepDraft } from "../../state/drafts";
import { changedLines, merged } from "../../state/merge";
import "../editor/editor.css";
import "./notes.css";
import { toast } from "../talk/toasts";

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
    /* Whether the reader may change them. */
    isMine: boolean;
    /* Under which what is typed is kept in this tab. */
    draft: string;
    notes: string;
    /* What the master has at this moment. */
    ask: () => Promise<string>;
    save: (text: string) => Promise<unknown>;
    again: () => void;
}

const basis = (draft: string): string => `${draft}.of`; // what the master had when the draft was begun: it outlives a page loaded again as the draft does

function Theirs({ base, theirs }: { base: string; theirs: string }) {
    return <section aria-label="What somebody else has changed"><p class="why">Somebody else has changed them meanwhile: + is theirs, - they took away. Save again replaces theirs with yours.</p>
        <pre class="text" tabIndex={0} role="region" aria-label="Their changes">{changedLines(base, theirs).join("\n")}</pre></section>;
}

/* Who saved meanwhile is not written over without a word. */
function Writing({ draft, notes, ask, save, again, done }: Omit<NotesProps, "isMine"> & { done: () => void }) {
    const [text, setText] = useState(() => draftOf(draft) ?? notes), [isBusy, setBusy] = useState(false);
    const [base, setBase] = useState(() => draftOf(basis(draft)) ?? notes), [seen, setSeen] = useState<string | null>(null);
    const leave = () => {
        for (const key of [draft, basis(draft)]) keepDraft(key, null);
        done();
    };
    const send = async () => {
        setBusy(true);
        try {
            const there = await ask();
            if (there !== (seen ?? base) && there !== text) {
                setSeen(there);
                throw new Error("somebody else has changed them meanwhile; what they changed stands below");
            }
            await save(text);
            again();
            leave();
        } catch (e) {
            toast(`Notes not saved: ${(e as Error).message}`, true);
            setBusy(false);
        }
    };
    const both = useMemo(() => (seen === null ? null : merged(base, text, seen)), [base, text, seen]);
    const merge = () => {
        setBase(seen!);
        setSeen(null);
        type(both!, seen!);
    };
    const type = (t: string, of: string) => {
        setText(t);
        keepDraft(basis(draft), of); // first: a draft without it would pass for one of the newest text
        keepDraft(draft, t);
    };
    return <section class="panel" aria-label="Notes">
        <textarea aria-label="Notes, in Markdown" rows={14} value={text} onInput={(e) => type(e.currentTarget.value, base)} />
        <div class="row"><button type="button" class="main" disabled={isBusy} onClick={() => void send()}>Save</button>
            {both !== null && <button type="button" onClick={merge}>Put theirs into mine</button>}
            <button type="button" onClick={leave}>Cancel</button></div>
        {seen !== null && <Theirs base={base} theirs={seen} />}
        <h2>As it will be shown</h2>
        <Markdown text={text} />
    </section>;
}

export function Notes(p: NotesProps) {
    const [isWriting, setWriting] = useState(() => draftOf(p.draft) !== null);
    if (isWriting) return <Writing {...p} done={() => setWriting(false)} />;
    return <section class="panel" aria-label="Notes">
        <header><h2>Notes</h2>{p.isMine && <button type="button" class="push" onClick={() => setWriting(true)}>Edit notes</button>}</header>
        {p.notes ? <Markdown text={p.notes} /> : <p class="soft">No notes.</p>}
    </section>;
}
