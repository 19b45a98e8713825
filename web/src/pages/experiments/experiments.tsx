/* All experiments: live rows, of which only those in sight are asked for. What is seen is the address. */
import { useComputed } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { keepLook, lookOf, ownLook, type ListLook } from "../../state/kept";
import { COLUMNS, FIXED, LIST_VIEW, isFiltered, listQuery, listView, unreadOf, type Column, type ListView } from "../../state/list_address";
import { fieldsOf } from "../../state/filter_tree";
import { useLive } from "../../state/live";
import { maySomewhere } from "../../state/may";
import { navigate, path, query } from "../../state/router";
import { CHOSEN_MOST } from "../../ui/table/chosen";
import { Choices } from "../../ui/table/choices";
import { count } from "../../ui/words/format";
import { isNarrow } from "../../ui/narrow";
import "../../ui/parts.css";
import { csv, saveAs } from "../../ui/words/save";
import { toast } from "../../ui/talk/toasts";
import { useSight } from "../../ui/table/virtual";
import "./experiments.css";
import { Bulk } from "./bulk";
import { KINDS, shownColumns, type Shown } from "./columns";
import { askRows, askSorted, filterOf, formsetOf, isPlain, type Stretch } from "./data";
import type { Columns } from "./builder";
import { Filters, NO_FILTERS } from "./filters";
import { GroupChoice, GroupsPanel } from "./groups";
import { askRanges, heatable, type Ranges } from "./heat";
import { namesOf } from "./hp";
import { LookChoice, unkept } from "./look";
import { askMetricColumns } from "./metrics";
import { runsOf } from "./search";
import { NONE, tick, type Selection } from "./selection";
import { rowPx, Table } from "./table";
import { Problem } from "../problem";

const LIVE_MS = 1000, SEARCH_MS = 3000, UNSEEN_MS = 30_000, NAMES_MS = 30_000;
const PAGE = 50, NO_RANGES: Ranges = new Map();
const FILTER_MOST = 3500; // of a request's 4,000 bytes, as it is sent

/* The pages that the rows in sight lie on, as an offset and a limit. */
function pagesOf(first: number, end: number): [number, number] {
    const from = Math.floor(first / PAGE) * PAGE;
    return [from, Math.max(PAGE, Math.ceil(end / PAGE) * PAGE - from)];
}

/* What is shown is changed as the address has it now: what was drawn last may be older, e.g. for a search that was still typed. */
function change(to: Partial<ListView>): void {
    navigate(path.value + listQuery({ ...listView(query.value.toString()), ...to }), true);
}

const PLAIN = lookOf(new Map());
const lookText = (l: ListLook): string => listQuery({ ...LIST_VIEW, ...l });

/* The address's, else the reader's own; those go into the address, so that whoever gets it sees the same. */
function useLook(view: ListView): ListLook {
    const own = ownLook.value ?? PLAIN, isNamed = view.columns !== null || view.hps.length + view.metrics.length > 0;
    const look: ListLook = { columns: view.columns ?? own.columns, hps: isNamed ? view.hps : own.hps, metrics: isNamed ? view.metrics : own.metrics,
        pinned: view.pinned ?? own.pinned, heat: view.heat ?? own.heat, unheated: view.heat === null ? own.unheated : view.unheated };
    const told: ListLook = { ...look, columns: view.columns ?? PLAIN.columns, hps: view.hps, metrics: view.metrics, pinned: view.pinned ?? PLAIN.pinned, heat: view.heat ?? PLAIN.heat, unheated: view.unheated };
    const isOwn = lookText(look) !== lookText(told);
    useEffect(() => { if (isOwn) change({ ...look, columns: look.columns.join() === PLAIN.columns.join() ? view.columns : look.columns, pinned: look.pinned || view.pinned, heat: look.heat || view.heat }); }, [isOwn]);
    return look;
}

function useSelection(filter: string): [Selection, (s: Selection) => void] {
    const [held, setHeld] = useState({ filter, ticked: NONE });
    // What was ticked under another filter is not in sight: nothing must happen to it.
    return [held.filter === filter ? held.ticked : NONE, (ticked) => setHeld({ filter, ticked })];
}

/* Neither the page's address nor the request has room for any number of them. */
function showOnly(ids: number[]): void {
    const only = ids.sort((a, b) => a - b), filter = formsetOf({ ...listView(query.value.toString()), only });
    if (only.length > CHOSEN_MOST || encodeURIComponent(filter).length > FILTER_MOST)
        toast(`${count(only.length, "experiment")}, of which ${runsOf(only).length} do not follow one another, are too many to be asked for: choose fewer, or use Conditions`, true);
    else change({ only });
}

function ColumnChoice({ columns, set }: { columns: readonly Column[]; set: (columns: Column[]) => void }) {
    return <Choices name="Columns" summary={String(columns.length)} ticked={columns} set={(chosen) => set(COLUMNS.filter((c) => chosen.includes(c) || FIXED.includes(c)))}
        of={COLUMNS.map((c) => ({ value: c, text: KINDS[c].title, isFixed: FIXED.includes(c) }))} />;
}

/* Of the columns that are coloured, by what; asked when there is something else to be seen. */
function useRanges(view: ListView, look: ListLook, columns: Shown[], filter: string): Ranges {
    const heated = look.heat ? heatable(columns).filter((c) => !look.unheated.includes(c.sort)) : [];
    const live = useLive(`ranges ${filter} ${heated.map((c) => c.key).join("\n")}`, "", (stop) => askRanges(view, heated, stop), () => (heated.length ? NAMES_MS : null));
    return live.data ?? NO_RANGES;
}

/* What the rows in sight have, and what is chosen: names of hyperparameters and of metrics. */
function useColumnNames(got: Stretch, view: ListView): Columns {
    const ids = got.rows.map((e) => e.id), fields = fieldsOf(view.tree).map((f) => f.column), sort = view.sort.map((k) => k.replace(/^-/, ""));
    const [isWanted, setWanted] = useState(false);
    const live = useLive("metric columns", isWanted ? ids.join() : "", (stop) => askMetricColumns(isWanted ? ids.slice(0, PAGE) : [], stop), () => NAMES_MS);
    const hps = [...fields, ...sort].filter((c) => c.startsWith("hp.")).map((c) => c.slice(3));
    const metrics = [...fields, ...sort].filter((c) => c.includes(".") && !c.startsWith("hp."));
    return { hps: namesOf(got.rows, [...view.hps, ...hps]), metrics: [...new Set([...view.metrics, ...metrics, ...(live.data ?? [])])], onOpen: () => setWanted(true) };
}

/* All rows that match, not only those in sight. */
function Csv({ view, columns }: { view: ListView; columns: Shown[] }) {
    const [done, setDone] = useState<number | null>(null), stop = useRef<AbortController | null>(null);
    useEffect(() => () => stop.current?.abort(), []);
    const save = async () => {
        const mine = stop.current = new AbortController(), now = Date.now();
        setDone(0);
        try {
            const all = await askSorted(view, setDone, mine.signal);
            saveAs("experiments.csv", csv(columns.map((c) => (c.key === c.sort ? c.key : c.kind.title)), all.map((e) => columns.map((c) => c.kind.plain(e, now)))));
        } catch (e) {
            if (!mine.signal.aborted) toast(`CSV: ${(e as Error).message}`, true);
        }
        setDone(null);
    };
    return <button type="button" title="All that match, in the columns shown" disabled={done !== null} onClick={() => void save()}>
        {done === null ? "CSV" : `CSV: ${done.toLocaleString("en")}…`}</button>;
}

function Empty({ view }: { view: ListView }) {
    if (isFiltered(view)) return <p>No experiment matches. <button type="button" onClick={() => change(NO_FILTERS)}>Show all</button></p>;
    if (view.archived !== "no") return <p>Nothing is archived here.</p>;
    return <section class="panel" aria-label="How to begin">
        <h2>Nothing has been submitted yet</h2>
        <p>An experiment is a configuration and a folder with the model's code. From a terminal:</p>
        <pre class="text">det experiment create CONFIG.yaml FOLDER</pre>
        <p class="soft">It shows up here by itself. The sources' examples/ have some to begin with. Or <a href="/det/experiments/new">write one here</a>.</p>
    </section>;
}

export function ExperimentsPage() {
    const address = listView(query.value.toString()), look = useLook(address), view = { ...address, hps: look.hps, metrics: look.metrics }, columns = shownColumns(look.columns, look.hps, look.metrics), box = useRef<HTMLDivElement>(null);
    const filter = JSON.stringify([filterOf(view), view.tree, view.only]), key = `${filter} ${view.sort}`;
    const [ticked, setTicked] = useSelection(filter), [total, setTotal] = useState(0);
    const sight = useSight(box, total, rowPx(isNarrow.value, columns.length));
    const offset = useComputed(() => pagesOf(sight.first.value, sight.end.value)[0]).value, limit = useComputed(() => pagesOf(sight.first.value, sight.end.value)[1]).value;
    const live = useLive("experiments", JSON.stringify([key, offset, limit, view.hps, view.metrics]), (stop) => askRows(view, offset, limit, stop), () => (view.group.length ? UNSEEN_MS : isPlain(view) ? LIVE_MS : SEARCH_MS));
    const got = live.data ?? { of: view, offset: 0, rows: [], total: 0 };
    useLayoutEffect(() => { if (live.data) setTotal(live.data.total); }, [live.data?.total]);
    useEffect(() => box.current!.scrollTo({ top: 0 }), [key]);
    const names = useColumnNames(got, view), ranges = useRanges(view, look, columns, filter);
    const choose = (to: Partial<ListView>) => { // what the reader chooses here is their own from now on
        change(to);
        keepLook(to, look).catch(unkept);
    };
    const unread = unreadOf(query.value.toString());
    return <div class="experiments">
        <div class="head"><h1>Experiments</h1>
            <span class="row push">{maySomewhere("create") && <a class="button" href="/det/experiments/new">New experiment</a>}<ColumnChoice columns={look.columns} set={(c) => choose({ columns: c })} />
                <Choices name="Hyperparameters" summary={String(view.hps.length)} ticked={view.hps} set={(hps) => choose({ hps })}
                    of={names.hps.map((n) => ({ value: n, text: n }))} />
                <Choices name="Metrics" summary={String(view.metrics.length)} ticked={view.metrics} set={(metrics) => choose({ metrics })}
                    of={names.metrics.map((n) => ({ value: n, text: n }))} onOpen={names.onOpen} />
                <LookChoice pinned={look.pinned} heat={look.heat} unheated={look.unheated} heatable={heatable(columns)} set={choose} /><GroupChoice view={view} hps={names.hps} set={change} /><Csv view={view} columns={columns} /></span></div>
        <Filters view={view} set={change} total={live.data ? got.total : null} names={names} />
        <Problem error={live.error} what="The experiments" />
        {unread && <p class="error" role="alert">The conditions in this address are left out: {unread}.</p>}
        {view.group.length > 0 && <GroupsPanel view={view} set={change} />}
        <Bulk key={filter} view={view} ticked={ticked} total={got.total} clear={() => setTicked(NONE)} only={showOnly}
            acted={(failed) => { setTicked(tick(NONE, failed, true)); live.again(); }} />
        {live.data && !got.total && <Empty view={got.of} />}
        {!live.data && !live.error && <p class="soft">Asking…</p>}
        <div ref={box} class="list-box" tabIndex={0} role="region" aria-label="List of experiments" hidden={!got.total || view.group.length > 0}>
            <Table box={box} sight={sight} total={total} got={got} view={view} columns={columns} pinned={look.pinned} ranges={ranges} set={change} ticked={ticked} setTicked={setTicked} />
        </div>
    </div>;
}
