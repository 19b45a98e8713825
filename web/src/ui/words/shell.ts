import { visible } from "./ansi";

/* A text as one word of a command that a person may copy into a shell: whatever it holds, it does nothing there. */
export function word(text: string): string {
    const clear = visible(text.replace(/[\t\n\r]/g, " "));
    return /^[\w@%+=:,./-]+$/.test(clear) ? clear : `'${clear.replace(/'/g, "'\\''")}'`;
}
