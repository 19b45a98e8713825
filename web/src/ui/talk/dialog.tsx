/* A dialog with a form in it: Escape and Not now leave it, what it says went wrong stands in it. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import "./confirm.css";

export interface FormDialogProps {
    title: string;
    button: string;
    children: ComponentChildren;
    /* What throws is shown, and the dialog stays. */
    save: () => Promise<void>;
    close: () => void;
}

export function FormDialog({ title, button, children, save, close }: FormDialogProps) {
    const ref = useRef<HTMLDialogElement>(null);
    const [busy, setBusy] = useState(false), [error, setError] = useState("");
    useEffect(() => ref.current!.showModal(), []);
    const submit = async (e: Event) => {
        e.preventDefault();
        setBusy(true);
        setError("");
        try {
            await save();
            close();
        } catch (e) {
            setError((e as Error).message);
            setBusy(false);
        }
    };
    return <dialog ref={ref} class="confirm form-dialog" aria-label={title} onCancel={(e) => { e.preventDefault(); close(); }}>
        <form onSubmit={(e) => void submit(e)}>
            <h2>{title}</h2>
            {children}
            <p class="error" role="alert">{error}</p>
            <div class="row"><button type="submit" class="main" disabled={busy}>{button}</button>
                <button type="button" onClick={close}>Not now</button></div>
        </form>
    </dialog>;
}
