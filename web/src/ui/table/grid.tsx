/* A table of a page. Where rows are cards, each cell says what it is. */
import { useComputed, type ReadonlySignal } from "@preact/signals";
import { isValidElement, type ComponentChildren } from "preact";
import { bare, State } from "../state";
import { Name } from "../words/name";
import { csv, saveAs } from "../words/save";

export interface Column<T> {
    /* "": what can be done with the row. */
    head: string;
    cell: (row: T) => ComponentChildren;
}
/* What is pointed at, by the key of its row: here and in pictures of the same. */
export interface Pointing { at: ReadonlySignal<number | null>; set: (key: number | null) => void }
export interface GridProps<T> {
    name: string;
    rows: T[];
    /* The first is what a row is called by. */
    columns: Column<T>[];
    keyOf: (row: T) => string | number;
    /* What is said where there is no row. */
    none: string;
    /* Whether a button gives the rows as a file; of a list that was cut, those that are shown. */
    hasFile?: boolean;
    pointing?: Pointing;
}

/* What a cell says, as text: names whole, times in full, and not what can be pressed. */
export function plainOf(cell: ComponentChildren): string {
    if (typeof cell === "string" || typeof cell === "number") return String(cell);
    if (Array.isArray(cell)) return cell.map(plainOf).filter(Boolean).join(" ");
    if (!isValidElement(cell) || cell.type === "button") return "";
    const props = cell.props as { text?: unknown; state?: unknown; title?: unknown; children?: ComponentChildren };
    if (cell.type === Name) return String(props.text);
    if (cell.type === State) return bare(String(props.state));
    return cell.type === "span" && typeof props.title === "string" ? props.title : plainOf(props.children);
}

export function gridCsv<T>({ rows, columns }: Pick<GridProps<T>, "rows" | "columns">): string {
    const named = columns.filter((c) => c.head);
    return csv(named.map((c) => c.head), rows.map((r) => named.map((c) => { const cell = c.cell(r); return typeof cell === "number" ? cell : plainOf(cell); })));
}

function GridRow<T>({ row, id, columns: [first, ...rest], pointing }: { row: T; id: string | number; columns: Column<T>[]; pointing?: Pointing }) {
    const isOver = useComputed(() => pointing?.at.value === id), told = (key: number | null) => () => pointing?.set(key);
    return <tr class={isOver.value ? "hover" : undefined} data-row={id} {...(pointing && typeof id === "number" ? { onMouseEnter: told(id), onMouseLeave: told(null) } : {})}>
        <th scope="row" class="text">{first!.cell(row)}</th>
        {rest.map((c) => (c.head ? <td key={c.head} class="text" data-label={c.head}>{c.cell(row)}</td> : <td key={c.head}><span class="row">{c.cell(row)}</span></td>))}</tr>;
}

export function Grid<T>({ name, rows, columns, keyOf, none, hasFile = false, pointing }: GridProps<T>) {
    if (!rows.length) return <p class="soft">{none}</p>;
    return <div class="wide"><table class="grid cards" aria-label={name}>
        <thead><tr>{columns.map((c) => <th key={c.head} scope="col">{c.head || <span class="hidden">actions</span>}</th>)}</tr></thead>
        <tbody>{rows.map((r) => <GridRow key={keyOf(r)} row={r} id={keyOf(r)} columns={columns} pointing={pointing} />)}</tbody>
    </table>{hasFile && <p class="row"><button type="button" class="push" title="The rows that are shown" onClick={() => saveAs(`${name.toLowerCase().replace(/\W+/g, "_")}.csv`, gridCsv({ rows, columns }))}>CSV</button></p>}</div>;
}
