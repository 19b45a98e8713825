/* Conditions put together: groups of which all or any must hold, of any column, hyperparameters and metrics too. */
import { useEffect, useRef, useState } from "preact/hooks";
import { fieldsOf, isAboutEmptiness, isGroup, kindOf, operatorsOf, operatorWord, SEARCHED, treeText, wordsOf, type Field, type Group, type Kind, type Node, type Operator } from "../../state/filter_tree";
import { COLUMNS, isMetric } from "../../state/list_address";
import { Opens } from "../../ui/table/choices";
import { count } from "../../ui/words/format";
import { shown } from "../../ui/words/name";
import "./builder.css";
import { KINDS } from "./columns";

const DEPTH_MOST = 3, TYPED_MS = 400;
const ADDRESS_MOST = 3000; // of what the page's own address, which a link holds, has room for
const STATES = ["ACTIVE", "QUEUED", "PULLING", "STARTING", "RUNNING", "PAUSED", "STOPPING_COMPLETED", "STOPPING_CANCELED", "STOPPING_ERROR", "STOPPING_KILLED", "COMPLETED", "CANCELED", "ERROR", "DELETING", "DELETE_FAILED"];
const NEW: Field = { column: "name", op: "contains", value: "" };
/* Owners are chosen by name beside this. */
const GENERAL = COLUMNS.filter((c) => c !== "owner" && c !== "archived").map((c) => ({ column: SEARCHED[c] as string, title: KINDS[c].title }));

/* `onOpen`: they are wanted, by who opens a list of them. */
export interface Columns { hps: string[]; metrics: string[]; onOpen: () => void }

/* What another kind of column has no use for is not kept. */
function withColumn(f: Field, column: string): Field {
    const kind = kindOf(column), ops = operatorsOf(kind), isSame = kind === kindOf(f.column);
    const op = ops.includes(f.op) && isSame ? f.op : ops[0]!;
    return { column, op, value: isSame ? f.value : kind === "state" ? STATES[0]! : "" };
}

/* What is typed in a column of any type is a number where it reads as one. */
function typed(text: string, kind: Kind): string | number {
    return (kind === "number" || kind === "open") && text.trim() !== "" && Number.isFinite(Number(text)) ? Number(text) : text;
}

function Options({ of, prefix, label, current }: { of: string[]; prefix: string; label: string; current: string }) {
    const all = of.map((n) => prefix + n);
    return all.length ? <optgroup label={label}>{all.map((n) => <option key={n} value={n} selected={n === current}>{shown(n)}</option>)}</optgroup> : null;
}

const ANOTHER = " "; // no column is called so
const isNamed = (column: string): boolean => (column.startsWith("hp.") && column.length > 3) || isMetric(column);

/* A name that no experiment in sight has; one that names nothing is said where it is typed, and changes nothing. Who goes elsewhere is not held here. */
function ColumnName({ was, set, leave }: { was: string; set: (column: string) => void; leave: () => void }) {
    const isOver = useRef(false); // what is taken away is left once more
    const end = (act: () => void) => {
        if (!isOver.current) act();
        isOver.current = true;
    };
    const take = (input: HTMLInputElement, isLeft: boolean) => {
        const name = input.value.trim();
        input.setCustomValidity(!name || isNamed(name) ? "" : "As hp.NAME of a hyperparameter, or as validation.NAME.min of a metric; the last part is last, min, max or mean");
        if (name && (isLeft ? input.checkValidity() : input.reportValidity())) end(() => set(name));
        else if (isLeft) end(leave);
    };
    const onKeyDown = (e: KeyboardEvent & { currentTarget: HTMLInputElement }) => {
        if (e.key === "Enter") {
            e.preventDefault(); // the form is the whole search
            take(e.currentTarget, false);
        } else if (e.key === "Escape") {
            e.stopPropagation();
            end(leave);
        }
    };
    return <input aria-label="Name of a column" placeholder="hp.NAME, validation.NAME.min" maxLength={1000} size={28} defaultValue={isNamed(was) ? was : ""}
        ref={(e) => e?.focus()} onInput={(e) => e.currentTarget.setCustomValidity("")} onKeyDown={onKeyDown}
        onBlur={(e) => take(e.currentTarget, true)} />;
}

function ColumnPick({ f, names, set }: { f: Field; names: Columns; set: (f: Field) => void }) {
    const [isTyped, setTyped] = useState(false), pick = useRef<HTMLSelectElement>(null), wasTyped = useRef(false);
    useEffect(() => { // what was typed in is gone, and the keys with it: they go on from here
        if (wasTyped.current && !isTyped && document.activeElement === document.body) pick.current?.focus();
        wasTyped.current = isTyped;
    }, [isTyped]);
    const choose = (column: string) => {
        setTyped(column === ANOTHER);
        if (column !== ANOTHER) set(withColumn(f, column));
    };
    if (isTyped) return <ColumnName was={f.column} set={choose} leave={() => setTyped(false)} />;
    const isKnown = GENERAL.some((g) => g.column === f.column) || names.hps.some((n) => `hp.${n}` === f.column) || names.metrics.includes(f.column);
    return <select ref={pick} aria-label="Column" value={f.column} onChange={(e) => choose(e.currentTarget.value)}>
        {!isKnown && <option value={f.column}>{shown(f.column)}</option>}
        <optgroup label="Of the experiment">{GENERAL.map((g) => <option key={g.column} value={g.column}>{g.title}</option>)}</optgroup>
        <Options of={names.hps} prefix="hp." label="Hyperparameters" current={f.column} />
        <Options of={names.metrics} prefix="" label="Metrics of the best trial" current={f.column} />
        <option value={ANOTHER}>Another name…</option>
    </select>;
}

function Value({ f, set }: { f: Field; set: (f: Field) => void }) {
    const kind = kindOf(f.column), [text, setText] = useState(String(f.value ?? ""));
    useEffect(() => setText((t) => (typed(t, kind) === f.value ? t : String(f.value ?? ""))), [f.value]);
    if (isAboutEmptiness(f.op)) return null;
    if (kind === "state") return <select aria-label="Value" value={String(f.value)} onChange={(e) => set({ ...f, value: e.currentTarget.value })}>
        {STATES.map((s) => <option key={s} value={s}>{s}</option>)}</select>;
    const change = (e: { currentTarget: HTMLInputElement }) => {
        setText(e.currentTarget.value);
        set({ ...f, value: typed(e.currentTarget.value, kind) });
    };
    if (kind === "time") return <input aria-label="Value" type="date" value={text} onInput={change} />;
    if (kind === "number") return <input aria-label="Value" type="number" step="any" value={text} onInput={change} />;
    return <input aria-label="Value" maxLength={1000} value={text} onInput={change} />;
}

function Condition({ f, names, set, drop }: { f: Field; names: Columns; set: (f: Field) => void; drop: () => void }) {
    const kind = kindOf(f.column);
    return <li class="row condition">
        <ColumnPick f={f} names={names} set={set} />
        <select aria-label="Operator" value={f.op} onChange={(e) => set({ ...f, op: e.currentTarget.value as Operator })}>
            {operatorsOf(kind).map((op) => <option key={op} value={op}>{operatorWord(op, kind)}</option>)}</select>
        <Value key={f.column} f={f} set={set} />
        <button type="button" class="plain" aria-label="Take the condition away" onClick={drop}>×</button>
    </li>;
}

interface PartProps { g: Group; depth: number; names: Columns; set: (g: Group) => void; drop: (() => void) | null }

function Part({ g, depth, names, set, drop }: PartProps) {
    const at = (i: number, n: Node | null) => set({ ...g, children: n ? g.children.map((c, k) => (k === i ? n : c)) : g.children.filter((_, k) => k !== i) });
    return <div class="filter-group" role="group" aria-label={depth ? "Group of conditions" : "Conditions"}>
        <div class="row"><select aria-label="How many must hold" value={g.how} onChange={(e) => set({ ...g, how: e.currentTarget.value as Group["how"] })}>
            <option value="and">all of</option><option value="or">any of</option></select>
        {drop && <button type="button" class="plain" aria-label="Take the group away" onClick={drop}>×</button>}</div>
        <ul>{g.children.map((c, i) => (isGroup(c)
            ? <li key={i}><Part g={c} depth={depth + 1} names={names} set={(n) => at(i, n)} drop={() => at(i, null)} /></li>
            : <Condition key={i} f={c} names={names} set={(n) => at(i, n)} drop={() => at(i, null)} />))}</ul>
        <div class="row"><button type="button" onClick={() => set({ ...g, children: [...g.children, NEW] })}>Add a condition</button>
            {depth < DEPTH_MOST - 1 && <button type="button" onClick={() => set({ ...g, children: [...g.children, { how: g.how === "and" ? "or" : "and", children: [NEW] }] })}>Add a group</button>}</div>
    </div>;
}

const isTooLong = (text: string): boolean => encodeURIComponent(text).length > ADDRESS_MOST;

/* What is being put together, which goes into the address when the keys rest; what comes from there goes before it. */
function useDraft(tree: Group | null, set: (tree: Group | null) => void): [Group | null, (tree: Group | null) => void] {
    const [draft, setDraft] = useState(tree), sent = useRef(treeText(tree)), text = treeText(draft), given = treeText(tree);
    useEffect(() => {
        if (given === sent.current) return;
        sent.current = given;
        setDraft(tree);
    }, [given]);
    useEffect(() => {
        if (text === sent.current || isTooLong(text)) return;
        const timer = setTimeout(() => {
            sent.current = text;
            set(draft);
        }, TYPED_MS);
        return () => clearTimeout(timer);
    }, [text]);
    return [draft, setDraft];
}

/* A button that says what holds, and opens the tree. */
export function Builder({ tree: held, names, set: keep }: { tree: Group | null; names: Columns; set: (tree: Group | null) => void }) {
    const [tree, set] = useDraft(held, keep);
    const n = fieldsOf(tree).length;
    return <Opens summary={`Conditions: ${n || "none"}`} {...(tree ? { title: shown(wordsOf(tree)) } : {})} onOpen={names.onOpen}>
        <div class="pick-list filter-tree">
            <Part g={tree ?? { how: "and", children: [] }} depth={0} names={names} set={(g) => set(g.children.length ? g : null)} drop={null} />
            {isTooLong(treeText(tree)) && <p class="error" role="alert">These are too many or too long for an address: what is shown is still by those before the last change.</p>}
            {tree && <p class="soft">{count(n, "condition")}: <bdi>{shown(wordsOf(tree))}</bdi></p>}
        </div>
    </Opens>;
}
