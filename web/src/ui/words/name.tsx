/* A text that people chose, of any length: it stays text, turns nothing around it, and hides nothing. */
import { visible } from "./ansi";

const LONG = 200;

export function shown(text: string, most = LONG): string {
    const clear = visible(text.replace(/[\t\n\r]/g, " "));
    return clear.length > most ? clear.slice(0, most) + "…" : clear;
}

/* `most`: of its letters, where a row has little room; the title has the rest. */
export function Name({ text, most = LONG }: { text: string; most?: number }) {
    return <bdi title={text.length > most ? visible(text).slice(0, 4 * LONG) : undefined}>{shown(text, most)}</bdi>;
}
