/* Numbers out: rows as a file of comma-separated values. */

/* A cell that a spreadsheet takes for a formula is told to be text by a leading apostrophe. */
function cell(v: unknown): string {
    let text = v === null || v === undefined ? "" : String(v);
    if (typeof v === "string" && /^[=+\-@\t\r]/.test(text)) text = "'" + text;
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export function csv(head: string[], rows: unknown[][]): string {
    return [head, ...rows].map((r) => r.map(cell).join(",")).join("\r\n") + "\r\n";
}

/* A text as a file, or what is one already. */
export function saveAs(name: string, content: string | Blob, type = "text/csv"): void {
    const url = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type: `${type};charset=utf-8` }) : content);
    const a = document.createElement("a");
    a.href = url;
    a.download = name;
    a.click();
    URL.revokeObjectURL(url);
}
