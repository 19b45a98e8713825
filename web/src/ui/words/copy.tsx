/* Puts a text onto the clipboard; where a browser has none (without TLS), it says what to do instead. */
import { toast } from "../talk/toasts";

export async function copy(text: string): Promise<void> {
    const refused = () => toast("The browser does not let the page copy: mark the text.", true);
    const board = navigator.clipboard as Clipboard | undefined;
    await (board ? board.writeText(text).then(() => toast("Copied."), refused) : refused());
}

export function Copy({ text, label, words = "Copy" }: { text: string; /* What it copies, for those who cannot see where it stands. */ label?: string; words?: string }) {
    return <button type="button" aria-label={label} onClick={() => void copy(text)}>{words}</button>;
}
