/* What was typed and not sent yet: kept in this tab, so that neither a session that ends nor a page loaded again loses it. */
const KEY = "det.draft.";

/* Storage may be forbidden or full: then what is typed lasts as long as the page. */
export function draftOf(name: string): string | null {
    try {
        return sessionStorage.getItem(KEY + name);
    } catch {
        return null;
    }
}

/* null: there is nothing to keep any more. */
export function keepDraft(name: string, text: string | null): void {
    try {
        if (text === null) sessionStorage.removeItem(KEY + name);
        else sessionStorage.setItem(KEY + name, text);
    } catch {
        // then it lasts as long as the page
    }
}
