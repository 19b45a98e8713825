/* Numbers out: rows as a file of comma-separated values. */

function textOf(v: unknown): string {
    if (v === null || v === undefined) return "";
    return typeof v === "object" ? JSON.stringify(v) ?? "" : String(v);
}

/* What a spreadsheet takes for a formula, in letters of full width too. */
const FORMULA = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/* A formula is told to be text by a leading apostrophe; numbers and truths are none. */
function cell(v: unknown): string {
    let text = textOf(v);
    if (typeof v !== "number" && typeof v !== "boolean" && FORMULA.test(text)) text = "'" + text;
    return /[",\n\r]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

export function csvLines(rows: unknown[][]): string {
    return rows.map((r) => r.map(cell).join(",") + "\r\n").join("");
}

export function csv(head: string[], rows: unknown[][]): string {
    return csvLines([head]) + csvLines(rows);
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
