/* What this browser remembers of its reader; nothing here is of a session. */
import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";
const KEY = "det.theme";

function remembered(): Theme {
    try {
        const t = localStorage.getItem(KEY);
        return t === "light" || t === "dark" ? t : "system";
    } catch {
        return "system"; // storage may be forbidden
    }
}

export const theme = signal<Theme>("system");

export function startTheme(): void {
    theme.value = remembered();
    effect(() => {
        const t = theme.value;
        if (t === "system") delete document.documentElement.dataset.theme;
        else document.documentElement.dataset.theme = t;
        try {
            localStorage.setItem(KEY, t);
        } catch {
            // then it lasts as long as the page
        }
    });
}
