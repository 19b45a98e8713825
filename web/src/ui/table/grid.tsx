/* A table of a page. Where rows are cards, each cell says what it is. */
import type { ComponentChildren } from "preact";

export interface Column<T> {
    /* "": what can be done with the row. */
    head: string;
    cell: (row: T) => ComponentChildren;
}
export interface GridProps<T> {
    name: string;
    rows: T[];
    /* The first is what a row is called by. */
    columns: Column<T>[];
    keyOf: (row: T) => string | number;
    /* What is said where there is no row. */
    none: string;
}

export function Grid<T>({ name, rows, columns, keyOf, none }: GridProps<T>) {
    if (!rows.length) return <p class="soft">{none}</p>;
    const [first, ...rest] = columns;
    return <div class="wide"><table class="grid cards" aria-label={name}>
        <thead><tr>{columns.map((c) => <th key={c.head} scope="col">{c.head || <span class="hidden">actions</span>}</th>)}</tr></thead>
        <tbody>{rows.map((r) => <tr key={keyOf(r)} data-row={keyOf(r)}><th scope="row" class="text">{first!.cell(r)}</th>
            {rest.map((c) => (c.head ? <td key={c.head} class="text" data-label={c.head}>{c.cell(r)}</td> : <td key={c.head}><span class="row">{c.cell(r)}</span></td>))}</tr>)}</tbody>
    </table></div>;
}
