/* What this browser remembers of its reader; nothing here is of a session. */
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEY = "det.theme";

/* Storage may be forbidden: then there is nothing, and what is chosen lasts as long as the page. */
function read(key: string): string | null {
    try {
        return localStorage.getItem(key);
    } catch {
        return null;
    }
}

function write(key: string, text: string): void {
    try {
        localStorage.setItem(key, text);
    } catch {
        // then it lasts as long as the page
    }
}

function remembered(): Theme {
    const t = read(KEY);
    return t === "light" || t === "dark" ? t : "system";
}

export const theme = signal<Theme>("system");

export function startTheme(): void {
    theme.value = remembered();
    effect(() => {
        const t = theme.value;
        if (t === "system") delete document.documentElement.dataset.theme;
        else document.documentElement.dataset.theme = t;
        write(KEY, t);
    });
}
