/* Asks before what cannot be taken back; says what it will do, and the command that is the same. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import "./confirm.css";

interface Question { text: string; button: string; command: string; answer: (yes: boolean) => void }
const question = signal<Question | null>(null);

/* One question at a time: a new one answers the old with no. */
export function confirm(text: string, button: string, command = ""): Promise<boolean> {
    question.value?.answer(false);
    return new Promise((resolve) => {
        question.value = { text, button, command, answer: (yes) => { question.value = null; resolve(yes); } };
    });
}

function Dialog({ q }: { q: Question }) {
    const ref = useRef<HTMLDialogElement>(null);
    useEffect(() => ref.current!.showModal(), []);
    return <dialog ref={ref} class="confirm" aria-label={q.text} onCancel={() => q.answer(false)}>
        <p>{q.text}</p>
        {q.command && <p class="soft">The same as <code>{q.command}</code></p>}
        <div class="row">
            <button type="button" class="main" onClick={() => q.answer(true)}>{q.button}</button>
            <button type="button" onClick={() => q.answer(false)}>Not now</button>
        </div>
    </dialog>;
}

export function Confirm() {
    const q = question.value;
    return q && <Dialog key={q.text} q={q} />;
}
