/* A text that people chose, of any length: it stays text, turns nothing around it, and hides nothing. */
import { visible } from "./ansi";

const LONG = 200;

export function shown(text: string): string {
    const clear = visible(text.replace(/[\t\n\r]/g, " "));
    return clear.length > LONG ? clear.slice(0, LONG) + "…" : clear;
}

export function Name({ text }: { text: string }) {
    return <bdi title={text.length > LONG ? visible(text).slice(0, 4 * LONG) : undefined}>{shown(text)}</bdi>;
}
