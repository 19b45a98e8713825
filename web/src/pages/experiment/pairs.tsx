/* Any two hyperparameters or metrics of a search's trials against each other: as dots, and as cells with a mean in each. */
import { useMemo } from "preact/hooks";
import { position, type Axis } from "../../charts/axes";
import { gridOf, HeatMap, heatPicture, type Grid as Cells, type HeatShape } from "../../charts/heatmap";
import type { Row } from "../../charts/parallel";
import { PictureButtons } from "../../charts/picture";
import { Scatter, scatterPicture, type ScatterShape } from "../../charts/scatter";
import { choose } from "../../ui/table/chosen";
import { count, number } from "../../ui/words/format";
import { Grid } from "../../ui/table/grid";
import { shown } from "../../ui/words/name";
import { csv, saveAs } from "../../ui/words/save";
import { toggled, useSpace } from "./charts";
import { axesOf, searchOf } from "./data";
import type { Seen } from "./experiment";
import { statNames, STATS, withStats } from "./stats";

interface Names { hps: string[]; metric: string; stats: string[] }

interface Pair { x: Axis; y: Axis; by: Axis; rows: Row[]; names: Names; smallerIsBetter: boolean; words: string }

/* What is chosen by the address where there is such a name, and else the first of the rest. `onlyHps`: metrics are no axes. */
function usePair(seen: Seen, onlyHps: boolean): Pair | null {
    const { rows, names: hps, inside } = useSpace(seen), { scatterX, scatterY, colour } = seen.view, search = searchOf(seen.exp);
    const names: Names = { hps, metric: search.metric, stats: statNames(seen.metrics) }, key = names.stats.join();
    return useMemo(() => {
        const all = onlyHps ? hps : [...hps, search.metric, ...names.stats], of = (name: string, otherwise: string | undefined) => (all.includes(name) ? name : otherwise);
        const x = of(scatterX, all.find((n) => n !== scatterY) ?? all[0]), y = of(scatterY, all.find((n) => n !== x) ?? x);
        const by = [search.metric, ...names.stats].includes(colour) ? colour : search.metric;
        if (x === undefined || y === undefined) return null;
        const more = withStats(rows.filter((r) => inside.has(r.id)), seen.trials, names.stats.filter((n) => [x, y, by].includes(n)));
        const axis = (name: string) => axesOf(seen.exp, more, [name], search.metric).find((a) => a.name === name)!;
        const isOwn = by === search.metric || STATS.some((s) => by === `validation.${search.metric}.${s}`);
        return { x: axis(x), y: axis(y), by: axis(by), rows: more, names, smallerIsBetter: isOwn && search.smallerIsBetter,
            words: isOwn ? `the more yellow, the better ${by}` : `the more yellow, the larger ${by}` };
    }, [rows, key, scatterX, scatterY, colour, seen.trials, JSON.stringify([...inside]), onlyHps]);
}

function Pick({ label, value: v, names, onlyHps = false, onlyMetrics = false, onPick }: { label: string; value: string; names: Names; onlyHps?: boolean;
    onlyMetrics?: boolean; onPick: (name: string) => void }) {
    const of = (all: string[]) => all.map((n) => <option key={n} value={n}>{shown(n)}</option>);
    return <label class="quiet">{label} <select value={v} onChange={(e) => onPick(e.currentTarget.value)}>
        {!onlyMetrics && names.hps.length > 0 && <optgroup label="Hyperparameters">{of(names.hps)}</optgroup>}
        {!onlyHps && <optgroup label="What the search goes by">{of([names.metric])}</optgroup>}
        {!onlyHps && names.stats.length > 0 && <optgroup label="Metrics of each trial">{of(names.stats)}</optgroup>}
    </select></label>;
}

function Picks({ pair, seen, onlyHps = false }: { pair: Pair; seen: Seen; onlyHps?: boolean }) {
    const { names } = pair;
    return <><Pick label="across" value={pair.x.name} names={names} onlyHps={onlyHps} onPick={(n) => seen.set({ scatterX: n })} />
        <Pick label="up" value={pair.y.name} names={names} onlyHps={onlyHps} onPick={(n) => seen.set({ scatterY: n })} />
        <Pick label="colour" value={pair.by.name} names={names} onlyMetrics onPick={(n) => seen.set({ colour: n })} /><span class="soft">{shown(pair.words)}</span></>;
}

const fileOf = (seen: Seen, kind: string): string => `experiment_${seen.exp.id}_${kind}`;
const titleOf = (seen: Seen, summary: string): string => `${shown(seen.exp.name)} #${seen.exp.id}: ${summary}`;

export function ScatterTab({ seen }: { seen: Seen }) {
    const pair = usePair(seen, false);
    if (!pair) return null; // there is always the metric
    const { x, y, by, rows } = pair, names = [...new Set([x.name, y.name, by.name])];
    const without = rows.filter((r) => Number.isNaN(position(x, r.values[x.name])) || Number.isNaN(position(y, r.values[y.name]))).length;
    const summary = `${count(rows.length - without, "trial")}: ${x.name} across, ${y.name} up, coloured by ${by.name}` + (without ? `; ${count(without, "trial")} without a number for both: not drawn` : "");
    const chart: ScatterShape = { x, y, by, rows, smallerIsBetter: pair.smallerIsBetter, hover: seen.hover.value, chosen: seen.view.trials };
    const save = () => saveAs(`${fileOf(seen, "scatter")}.csv`, csv(["trial", ...names], rows.map((r) => [r.id, ...names.map((n) => r.values[n])])));
    return <section class="panel" aria-label="Scatter">
        <header><Picks pair={pair} seen={seen} /></header>
        <Scatter {...chart} onHover={seen.setHover}
            onPick={(id) => seen.set({ trials: toggled(seen.view.trials, id) })} summary={summary} />
        <footer class="row soft"><span>{shown(summary)}</span><span class="row push"><button type="button" onClick={save}>CSV</button>
            <PictureButtons name={fileOf(seen, "scatter")} of={() => scatterPicture(chart, titleOf(seen, summary))} /></span></footer>
    </section>;
}

const PARTS_MOST = 100; // more have no room for a colour each

const chooseCell = (seen: Seen, ids: number[]): void => choose(seen.view.trials, ids, (trials) => seen.set({ trials }));
const figure = (v: number): string => (Number.isNaN(v) ? "" : number(v));

/* The same for who cannot see it or has no pointer. */
function CellTable({ pair, cells, seen }: { pair: Pair; cells: Cells; seen: Seen }) {
    const { x, y, by } = pair, chosen = seen.view.trials;
    return <details class="stacked"><summary>The cells as a table</summary>
        <Grid name="Cells" rows={cells.cells} keyOf={(c) => `${c.x},${c.y}`} none="No trial has both." columns={[
            { head: shown(x.name), cell: (c) => shown(cells.xs[c.x]!.label) }, { head: x.name === y.name ? `${shown(y.name)} up` : shown(y.name), cell: (c) => shown(cells.ys[c.y]!.label) },
            { head: `mean ${shown(by.name)}`, cell: (c) => <span title={String(c.spread.mean)}>{figure(c.spread.mean)}</span> }, { head: "deviation", cell: (c) => figure(c.spread.deviation) },
            { head: "trials", cell: (c) => (c.spread.n < c.ids.length ? `${c.spread.n} of ${c.ids.length}` : c.ids.length) },
            { head: "", cell: (c) => <button type="button" aria-pressed={c.ids.every((id) => chosen.includes(id))} title={`trials ${c.ids.join(", ")}`}
                aria-label={`Choose the trials of ${shown(cells.xs[c.x]!.label)}, ${shown(cells.ys[c.y]!.label)}`} onClick={() => chooseCell(seen, c.ids)}>Choose</button> }]} />
    </details>;
}

function HeatPanel({ pair, seen }: { pair: Pair; seen: Seen }) {
    const { x, y, by, rows } = pair, cells = useMemo(() => gridOf({ x, y, by: by.name, rows }), [pair]), n = cells.cells.reduce((s, c) => s + c.ids.length, 0);
    const summary = `${count(n, "trial")} in ${count(cells.cells.length, "cell")}: ${x.name} across, ${y.name} up, the mean of ${by.name} in each`;
    const wide = [x, y].find((a) => a.kind === "category" && a.categories.length > PARTS_MOST);
    if (wide) return <section class="panel" aria-label="Heat map"><header><Picks pair={pair} seen={seen} onlyHps /></header>
        <p>{shown(wide.name)} has more than {PARTS_MOST} values that are no numbers: too many for a map.</p></section>;
    const chart: HeatShape = { x, y, by: by.name, rows, smallerIsBetter: pair.smallerIsBetter, hover: seen.hover.value, chosen: seen.view.trials };
    const save = () => saveAs(`${fileOf(seen, "heat")}.csv`, csv([x.name, y.name, `mean ${by.name}`, "deviation", "lowest", "highest", "n", "trials"],
        cells.cells.map(({ x: i, y: k, ids, spread: s }) => [cells.xs[i]!.label, cells.ys[k]!.label, s.mean, s.deviation, s.lo, s.hi, s.n, ids.join(" ")])));
    return <section class="panel" aria-label="Heat map">
        <header><Picks pair={pair} seen={seen} onlyHps /></header>
        {cells.cells.length ? <HeatMap {...chart} grid={cells} summary={summary} onHover={seen.setHover} onPick={(ids) => chooseCell(seen, ids)} />
            : <p>No trial has both {shown(x.name)} and {shown(y.name)}.</p>}
        <footer class="row soft"><span>{shown(summary)}; press a cell to choose its trials</span><span class="row push"><button type="button" onClick={save}>CSV</button>
            <PictureButtons name={fileOf(seen, "heat")} of={() => heatPicture(chart, cells, titleOf(seen, summary))} /></span></footer>
        <CellTable pair={pair} cells={cells} seen={seen} />
    </section>;
}

export function HeatTab({ seen }: { seen: Seen }) {
    const pair = usePair(seen, true);
    return pair ? <HeatPanel pair={pair} seen={seen} /> : <p>No hyperparameter varies between the trials.</p>;
}
