/* The rows in sight as a table; heads sort, boxes tick. What has not come yet is a row of dots. */
import { Component, type RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { rowHeight, ROWS } from "../../state/kept";
import { FIRST_SORT, type ListView } from "../../state/list_address";
import { isDark } from "../../ui/dark";
import { isNarrow } from "../../ui/narrow";
import { SortHead } from "../../ui/table/sort_head";
import { toast } from "../../ui/talk/toasts";
import type { Sight } from "../../ui/table/virtual";
import type { Shown } from "./columns";
import type { Listed, Stretch } from "./data";
import type { SetView } from "./filters";
import { heatStyle, type Ranges } from "./heat";
import { ALL, between, isTicked, NONE, size, tick, type Selection } from "./selection";

/* As experiments.css has them: a line of a card and what is around its lines. */
const CARD_LINE_PX = 28, CARD_EDGE_PX = 13;
const BOX_PX = 44;
/* What a name may take of room that is left over: on a wide screen what is beside it stays beside it. */
const NAME_MORE_PX = 480;

/* How high a row is; of a card the box and the id share a line, the name has one, and the others are two a line. */
export function rowPx(isCard: boolean, columns: number): number {
    return isCard ? CARD_EDGE_PX + CARD_LINE_PX * (2 + Math.ceil((columns - 2) / 2)) : ROWS[rowHeight.value];
}

export interface TableProps {
    box: RefObject<HTMLDivElement | null>;
    sight: Sight;
    /* Rows that there is room for: as many as matched when last asked. */
    total: number;
    got: Stretch;
    view: ListView;
    columns: Shown[];
    /* How many of them stay at the left. */
    pinned: number;
    ranges: Ranges;
    set: SetView;
    ticked: Selection;
    setTicked: (s: Selection) => void;
}

/* Where each of the columns that stay is, from the left; the box that ticks a row stays with them. */
export function placesOf(columns: readonly Shown[], pinned: number): number[] {
    let left = BOX_PX;
    return columns.slice(0, pinned).map((c) => (left += c.kind.width) - c.kind.width);
}

const stays = (left: number | undefined) => (left === undefined ? {} : { class: "stays", style: { left: `${left}px` } });

function Heads(p: TableProps) {
    const places = isNarrow.value ? [] : placesOf(p.columns, p.pinned);
    const n = size(p.ticked, p.got.total), isAll = n > 0 && n >= p.got.total;
    return <thead><tr aria-rowindex={1}>
        <th scope="col" {...stays(places.length ? 0 : undefined)}><input type="checkbox" aria-label="Select all that match" checked={isAll} disabled={!p.got.total}
            ref={(box) => { if (box) box.indeterminate = n > 0 && !isAll; }} onChange={() => p.setTicked(n ? NONE : ALL)} /></th>
        {p.columns.map((c, i) => <SortHead key={c.key} title={c.kind.title} {...(places[i] === undefined ? {} : { left: places[i]! })} id={c.sort} sort={p.view.sort} set={(keys) => p.set({ sort: keys.length ? keys : [FIRST_SORT] })}>{c.kind.title}</SortHead>)}
    </tr></thead>;
}

interface CellsProps { e: Listed; columns: Shown[]; pinned: number; ranges: Ranges; isDark: boolean; now: number }

function Cells({ e, columns, pinned, ranges, isDark, now }: CellsProps) {
    const places = placesOf(columns, pinned);
    return <>{columns.map(({ key, sort, kind }, i) => {
        const show = kind.show(e, now), title = kind.whole?.(e) || undefined, at = stays(places[i]), style = { ...at.style, ...heatStyle(ranges.get(sort), kind.heat?.(e), isDark, kind.isTurned?.(e)) };
        return key === "name" ? <th key={key} scope="row" title={title} class={at.class} style={style}>{show}</th>
            : <td key={key} title={title} data-label={kind.title} class={at.class} style={style}>{show}</td>;
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

interface RowProps { e: Listed; i: number; columns: Shown[]; pinned: number; ranges: Ranges; isDark: boolean; isOn: boolean; click: Click }

/* Drawn again only when there is something new of it: while the reader scrolls nothing is. */
class Row extends Component<RowProps> {
    override shouldComponentUpdate(next: RowProps): boolean {
        const p = this.props;
        return next.e !== p.e || next.i !== p.i || next.isOn !== p.isOn || next.pinned !== p.pinned || next.ranges !== p.ranges || next.isDark !== p.isDark ||
            next.columns.length !== p.columns.length || next.columns.some((c, i) => c.key !== p.columns[i]!.key);
    }

    render({ e, i, isOn, click, ...how }: RowProps) {
        return <tr aria-rowindex={i + 2} data-experiment={e.id} class={isOn ? "chosen" : undefined}>
            <td {...stays(how.pinned ? 0 : undefined)}><input type="checkbox" checked={isOn} aria-label={`Select experiment ${e.id}`}
                onClick={(ev) => click(e.id, !isOn, ev.shiftKey)} /></td>
            <Cells e={e} {...how} now={Date.now()} />
        </tr>;
    }
}

function Rows(p: TableProps) {
    const { got, columns } = p, click = useTicking(p), first = p.sight.first.value, end = p.sight.end.value, height = rowPx(isNarrow.value, columns.length);
    const how = { columns, pinned: isNarrow.value ? 0 : p.pinned, ranges: p.ranges, isDark: isDark.value };
    return <>
        <Gap px={first * height} />
        <tbody>{Array.from({ length: end - first }, (_, k) => {
            const i = first + k, e = got.rows[i - got.offset];
            if (!e) return <tr key={`at ${i}`} aria-rowindex={i + 2} class="soft"><td /><td colSpan={columns.length}>…</td></tr>;
            return <Row key={e.id} e={e} i={i} {...how} isOn={isTicked(p.ticked, e.id)} click={click} />;
        })}</tbody>
        <Gap px={(p.total - end) * height} />
    </>;
}

export function Table(p: TableProps) {
    const { got, columns } = p;
    const wide = BOX_PX + columns.reduce((sum, c) => sum + c.kind.width, 0);
    useAdded(p.box, columns);
    const style = isNarrow.value ? { "--card": `${rowPx(true, columns.length)}px` } : { minWidth: `${wide}px`, maxWidth: `${wide + NAME_MORE_PX}px`, "--row": `${rowPx(false, columns.length)}px` };
    return <table class="grid list cards" style={style} aria-label="Experiments" aria-rowcount={got.total + 1}>
        <colgroup><col style={{ width: `${BOX_PX}px` }} />
            {columns.map((c) => <col key={c.key} style={c.key === "name" ? {} : { width: `${c.kind.width}px` }} />)}</colgroup>
        <Heads {...p} />
        <Rows {...p} />
    </table>;
}
