/* The rows in sight as a table; heads sort, boxes tick. What has not come yet is a row of dots. */
import { Component, type RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import { SORTABLE, type Column, type ListView } from "../state/list_address";
import { toast } from "../ui/toasts";
import type { Sight } from "../ui/virtual";
import type { Experiment } from "./experiment_data";
import { KINDS } from "./experiments_columns";
import { hpKind } from "./experiments_hp";
import type { Stretch } from "./experiments_data";
import type { SetView } from "./experiments_filters";
import { ALL, isTicked, NONE, size, tick, type Selection } from "./experiments_selection";

export const ROW_PX = 36; // as experiments.css has it
const BOX_PX = 44;

export interface TableProps {
    box: RefObject<HTMLDivElement | null>;
    sight: Sight;
    got: Stretch;
    view: ListView;
    columns: readonly Column[];
    set: SetView;
    ticked: Selection;
    setTicked: (s: Selection) => void;
}

function Head({ c, view, set }: { c: Column; view: ListView; set: SetView }) {
    const isSorted = view.sort === c, title = KINDS[c].title;
    if (!SORTABLE.includes(c)) return <th scope="col">{title}</th>;
    return <th scope="col" aria-sort={isSorted ? (view.isDown ? "descending" : "ascending") : undefined}>
        <button type="button" title={`Sort by ${title.toLowerCase()}`}
            onClick={() => set({ sort: c, isDown: isSorted ? !view.isDown : c !== "name" })}>
            {title}{isSorted && <span aria-hidden="true"> {view.isDown ? "▼" : "▲"}</span>}</button>
    </th>;
}

function Heads(p: TableProps) {
    const n = size(p.ticked, p.got.total), isAll = n > 0 && n >= p.got.total;
    return <thead><tr aria-rowindex={1}>
        <th scope="col"><input type="checkbox" aria-label="Select all that match" checked={isAll} disabled={!p.got.total}
            ref={(box) => { if (box) box.indeterminate = n > 0 && !isAll; }} onChange={() => p.setTicked(n ? NONE : ALL)} /></th>
        {p.columns.map((c) => <Head key={c} c={c} view={p.view} set={p.set} />)}
        {p.view.hps.map((name) => <th key={`hp ${name}`} scope="col" title="hyperparameter">{hpKind(name).title}</th>)}
    </tr></thead>;
}

function Cells({ e, columns, hps, now }: { e: Experiment; columns: readonly Column[]; hps: readonly string[]; now: number }) {
    const own = columns.map((c) => {
        const kind = KINDS[c], show = kind.show(e, now), title = kind.whole?.(e) || undefined;
        return c === "name" ? <th key={c} scope="row" title={title}>{show}</th> : <td key={c} title={title}>{show}</td>;
    });
    return <>{own}{hps.map((name) => {
        const kind = hpKind(name);
        return <td key={`hp ${name}`} title={kind.whole!(e) || undefined}>{kind.show(e, now)}</td>;
    })}</>;
}

/* A gap is as high as the rows that it stands for. */
function Gap({ px }: { px: number }) {
    return px > 0 ? <tbody aria-hidden="true" class="gap"><tr style={{ height: `${px}px` }} /></tbody> : null;
}

/* With shift, all from the one that was clicked before. */
type Click = (i: number, isOn: boolean, isRange: boolean) => void;

function useTicking(p: TableProps): Click {
    const before = useRef(0), now = useRef(p);
    now.current = p; // a row that was drawn earlier acts on what is ticked now
    const [click] = useState((): Click => (i, isOn, isRange) => {
        const { got, ticked, setTicked } = now.current;
        const [from, to] = isRange ? [Math.min(i, before.current), Math.max(i, before.current)] : [i, i];
        const rows = got.rows.slice(Math.max(0, from - got.offset), Math.max(0, to - got.offset + 1));
        const isWhole = rows.length === to - from + 1;
        before.current = i;
        if (!isWhole) toast("The range begins where no rows are loaded any more: only its end was taken.", true);
        setTicked(tick(ticked, (isWhole ? rows : got.rows.slice(i - got.offset, i - got.offset + 1)).map((e) => e.id), isOn));
    });
    return click;
}

interface RowProps { e: Experiment; i: number; columns: readonly Column[]; hps: readonly string[]; isOn: boolean; click: Click }

/* Drawn again only when there is something new of it: while the reader scrolls nothing is. */
class Row extends Component<RowProps> {
    override shouldComponentUpdate(next: RowProps): boolean {
        const p = this.props;
        return next.e !== p.e || next.i !== p.i || next.isOn !== p.isOn || next.columns.join() !== p.columns.join() ||
            next.hps.join("\n") !== p.hps.join("\n");
    }

    render({ e, i, columns, hps, isOn, click }: RowProps) {
        return <tr aria-rowindex={i + 2} data-experiment={e.id} class={isOn ? "chosen" : undefined}>
            <td><input type="checkbox" checked={isOn} aria-label={`Select experiment ${e.id}`}
                onClick={(ev) => click(i, !isOn, ev.shiftKey)} /></td>
            <Cells e={e} columns={columns} hps={hps} now={Date.now()} />
        </tr>;
    }
}

export function Table(p: TableProps) {
    const { sight, got, columns } = p, { hps } = p.view, click = useTicking(p);
    const wide = BOX_PX + columns.reduce((sum, c) => sum + KINDS[c].width, 0) + hps.reduce((sum, name) => sum + hpKind(name).width, 0);
    const at = Array.from({ length: Math.max(0, sight.end - sight.first) }, (_, i) => sight.first + i);
    return <table class="grid list" style={{ minWidth: `${wide}px` }} aria-label="Experiments" aria-rowcount={got.total + 1}>
        <colgroup><col style={{ width: `${BOX_PX}px` }} />
            {columns.map((c) => <col key={c} style={c === "name" ? {} : { width: `${KINDS[c].width}px` }} />)}
            {hps.map((name) => <col key={`hp ${name}`} style={{ width: `${hpKind(name).width}px` }} />)}</colgroup>
        <Heads {...p} />
        <Gap px={sight.above} />
        <tbody>{at.map((i) => {
            const e = got.rows[i - got.offset];
            if (!e) return <tr key={`at ${i}`} aria-rowindex={i + 2} class="soft"><td /><td colSpan={columns.length + hps.length}>…</td></tr>;
            return <Row key={e.id} e={e} i={i} columns={columns} hps={hps} isOn={isTicked(p.ticked, e.id)} click={click} />;
        })}</tbody>
        <Gap px={sight.below} />
    </table>;
}
