/* The rows in sight as a table; heads sort, boxes tick. What has not come yet is a row of dots. */
import { Component, type RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { FIRST_SORT, type ListView } from "../../state/list_address";
import { isNarrow } from "../../ui/narrow";
import { SortHead } from "../../ui/table/sort_head";
import { toast } from "../../ui/talk/toasts";
import type { Sight } from "../../ui/table/virtual";
import type { Shown } from "./columns";
import type { Listed, Stretch } from "./data";
import type { SetView } from "./filters";
import { ALL, between, isTicked, NONE, size, tick, type Selection } from "./selection";

/* As experiments.css has them: a row of the table, a line of a card and what is around its lines. */
const ROW_PX = 36, CARD_LINE_PX = 28, CARD_EDGE_PX = 13;
const BOX_PX = 44;

/* How high a row is; of a card the box and the id share a line, the name has one, and the others are two a line. */
export function rowPx(isCard: boolean, columns: number): number {
    return isCard ? CARD_EDGE_PX + CARD_LINE_PX * (2 + Math.ceil((columns - 2) / 2)) : ROW_PX;
}

export interface TableProps {
    box: RefObject<HTMLDivElement | null>;
    sight: Sight;
    /* Rows that there is room for: as many as matched when last asked. */
    total: number;
    got: Stretch;
    view: ListView;
    columns: Shown[];
    set: SetView;
    ticked: Selection;
    setTicked: (s: Selection) => void;
}

function Heads(p: TableProps) {
    const n = size(p.ticked, p.got.total), isAll = n > 0 && n >= p.got.total;
    return <thead><tr aria-rowindex={1}>
        <th scope="col"><input type="checkbox" aria-label="Select all that match" checked={isAll} disabled={!p.got.total}
            ref={(box) => { if (box) box.indeterminate = n > 0 && !isAll; }} onChange={() => p.setTicked(n ? NONE : ALL)} /></th>
        {p.columns.map((c) => <SortHead key={c.key} id={c.sort} sort={p.view.sort} set={(keys) => p.set({ sort: keys.length ? keys : [FIRST_SORT] })}>{c.kind.title}</SortHead>)}
    </tr></thead>;
}

function Cells({ e, columns, now }: { e: Listed; columns: Shown[]; now: number }) {
    return <>{columns.map(({ key, kind }) => {
        const show = kind.show(e, now), title = kind.whole?.(e) || undefined;
        return key === "name" ? <th key={key} scope="row" title={title}>{show}</th> : <td key={key} title={title} data-label={kind.title}>{show}</td>;
    })}</>;
}

/* A column that was added is brought into sight. */
function useAdded(box: TableProps["box"], columns: Shown[]): void {
    const before = useRef<string[] | null>(null), keys = columns.map((c) => c.key);
    useEffect(() => {
        const at = keys.findIndex((k) => before.current && !before.current.includes(k)), b = box.current;
        before.current = keys;
        const head = b?.querySelector("thead tr")?.children[at + 1];
        if (at < 0 || !b || !(head instanceof HTMLElement)) return;
        const [left, right] = [head.offsetLeft, head.offsetLeft + head.offsetWidth];
        if (right > b.scrollLeft + b.clientWidth) b.scrollLeft = right - b.clientWidth;
        else if (left < b.scrollLeft) b.scrollLeft = left;
    }, [keys.join("\n")]);
}

/* A gap is as high as the rows that it stands for. */
function Gap({ px }: { px: number }) {
    return px > 0 ? <tbody aria-hidden="true" class="gap"><tr style={{ height: `${px}px` }} /></tbody> : null;
}

/* With shift, all from the one that was clicked before. */
type Click = (id: number, isOn: boolean, isRange: boolean) => void;

function useTicking(p: TableProps): Click {
    const before = useRef<number | null>(null), now = useRef(p); // the id: rows move as others come
    now.current = p; // a row that was drawn earlier acts on what is ticked now
    const [click] = useState((): Click => (id, isOn, isRange) => {
        const { got, ticked, setTicked } = now.current, range = isRange && before.current !== null ? between(got.rows, before.current, id) : [id];
        before.current = id;
        if (!range) toast("The range begins where no rows are loaded any more: only its end was taken.", true);
        setTicked(tick(ticked, range ?? [id], isOn));
    });
    return click;
}

interface RowProps { e: Listed; i: number; columns: Shown[]; isOn: boolean; click: Click }

/* Drawn again only when there is something new of it: while the reader scrolls nothing is. */
class Row extends Component<RowProps> {
    override shouldComponentUpdate(next: RowProps): boolean {
        const p = this.props;
        return next.e !== p.e || next.i !== p.i || next.isOn !== p.isOn ||
            next.columns.length !== p.columns.length || next.columns.some((c, i) => c.key !== p.columns[i]!.key);
    }

    render({ e, i, columns, isOn, click }: RowProps) {
        return <tr aria-rowindex={i + 2} data-experiment={e.id} class={isOn ? "chosen" : undefined}>
            <td><input type="checkbox" checked={isOn} aria-label={`Select experiment ${e.id}`}
                onClick={(ev) => click(e.id, !isOn, ev.shiftKey)} /></td>
            <Cells e={e} columns={columns} now={Date.now()} />
        </tr>;
    }
}

function Rows(p: TableProps) {
    const { got, columns } = p, click = useTicking(p), first = p.sight.first.value, end = p.sight.end.value, height = rowPx(isNarrow.value, columns.length);
    return <>
        <Gap px={first * height} />
        <tbody>{Array.from({ length: end - first }, (_, k) => {
            const i = first + k, e = got.rows[i - got.offset];
            if (!e) return <tr key={`at ${i}`} aria-rowindex={i + 2} class="soft"><td /><td colSpan={columns.length}>…</td></tr>;
            return <Row key={e.id} e={e} i={i} columns={columns} isOn={isTicked(p.ticked, e.id)} click={click} />;
        })}</tbody>
        <Gap px={(p.total - end) * height} />
    </>;
}

export function Table(p: TableProps) {
    const { got, columns } = p;
    const wide = BOX_PX + columns.reduce((sum, c) => sum + c.kind.width, 0);
    useAdded(p.box, columns);
    const style = isNarrow.value ? { "--card": `${rowPx(true, columns.length)}px` } : { minWidth: `${wide}px` };
    return <table class="grid list cards" style={style} aria-label="Experiments" aria-rowcount={got.total + 1}>
        <colgroup><col style={{ width: `${BOX_PX}px` }} />
            {columns.map((c) => <col key={c.key} style={c.key === "name" ? {} : { width: `${c.kind.width}px` }} />)}</colgroup>
        <Heads {...p} />
        <Rows {...p} />
    </table>;
}
