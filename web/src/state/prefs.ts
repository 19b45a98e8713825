/* What this browser remembers of its reader; nothing here is of a session. */
import { effect, signal } from "@preact/signals";
import { columnsOf, FIRST_COLUMNS, type Column } from "./list_address";

export type Theme = "system" | "light" | "dark";
const KEY = "det.theme", COLUMNS_KEY = "det.experiments.columns";

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

/* The columns of the list of experiments that its reader chose last. */
export function ownColumns(): Column[] {
    return columnsOf(read(COLUMNS_KEY)) ?? [...FIRST_COLUMNS];
}

export function keepColumns(columns: readonly Column[]): void {
    write(COLUMNS_KEY, columns.join(","));
}
