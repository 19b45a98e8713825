/* Short messages about what was done, or why it was not; read out by screen readers. */
import { signal } from "@preact/signals";
import "./toasts.css";

interface Toast { id: number; text: string; isError: boolean }
const toasts = signal<Toast[]>([]);
let last = 0;
const STAYS_MS = 8000;

function drop(id: number): void {
    toasts.value = toasts.value.filter((t) => t.id !== id);
}

/* An error stays until it is closed. */
export function toast(text: string, isError = false): void {
    const id = ++last;
    toasts.value = [...toasts.value.slice(-4), { id, text, isError }];
    if (!isError) setTimeout(() => drop(id), STAYS_MS);
}

export function Toasts() {
    return <div class="toasts" role="status" aria-live="polite">
        {toasts.value.map((t) => <div key={t.id} class={t.isError ? "toast toast-error" : "toast"}>
            <span>{t.text}</span>
            <button type="button" class="plain" aria-label="Close this message" onClick={() => drop(t.id)}>×</button>
        </div>)}
    </div>;
}
