/* A tree of conditions as the address has it, and as SearchExperiments takes it. Any text gives a tree or none. */

export const OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "contains", "notContains", "isEmpty", "notEmpty"] as const;
export type Operator = (typeof OPERATORS)[number];
export interface Field { column: string; op: Operator; value: string | number | null }
export interface Group { how: "and" | "or"; children: Node[] }
export type Node = Field | Group;
export type Kind = "number" | "text" | "time" | "state" | "tags" | "open";

export const isGroup = (n: Node): n is Group => "how" in n;
export const isAboutEmptiness = (op: Operator): boolean => op === "isEmpty" || op === "notEmpty";

const DEPTH_MOST = 4, FIELDS_MOST = 50, TEXT_MAX = 1000;

/* What the list calls a column, and what SearchExperiments does. */
export const SEARCHED = {
    id: "id", name: "name", state: "state", progress: "progress", trials: "numTrials", best: "searcherMetricsVal", metric: "searcherMetric",
    searcher: "searcherType", labels: "tags", owner: "user", pool: "resourcePool", started: "startTime", ended: "endTime", duration: "duration",
    checkpoints: "checkpointCount", size: "checkpointSize", description: "description", project: "projectId", forked: "forkedFrom", archived: "archived",
} as const;

const KINDS: Record<string, Kind> = {
    id: "number", progress: "number", numTrials: "number", searcherMetricsVal: "number", duration: "number", checkpointCount: "number", checkpointSize: "number",
    forkedFrom: "number", projectId: "number", startTime: "time", endTime: "time", state: "state", tags: "tags",
    name: "text", description: "text", searcherType: "text", searcherMetric: "text", resourcePool: "text", user: "text", archived: "text",
};

/* Hyperparameters and metrics have values of any type. */
export function kindOf(column: string): Kind {
    return Object.hasOwn(KINDS, column) ? KINDS[column]! : "open";
}

const OF_TEXT: Operator[] = ["contains", "notContains", "=", "!=", "isEmpty", "notEmpty"];
const OF_NUMBER: Operator[] = ["=", "!=", "<", "<=", ">", ">=", "isEmpty", "notEmpty"];

/* The first is the one that a new condition has. */
export function operatorsOf(kind: Kind): readonly Operator[] {
    switch (kind) {
    case "text": case "tags": return OF_TEXT;
    case "number": case "time": return OF_NUMBER;
    case "state": return ["=", "!="];
    case "open": return [...OF_NUMBER, "contains", "notContains"];
    }
}

/* A condition that still lacks its value says nothing. */
export const isWhole = (f: Field): boolean => f.column !== "" && (isAboutEmptiness(f.op) || (f.value !== null && f.value !== ""));

export function fieldsOf(n: Node | null): Field[] {
    return !n ? [] : isGroup(n) ? n.children.flatMap(fieldsOf) : [n];
}

/* ---- The address ---- */

type Text = [string, string, (string | number | null)?] | { and: Text[] } | { or: Text[] };

const packed = (n: Node): Text => (isGroup(n) ? { [n.how]: n.children.map(packed) } as Text : isAboutEmptiness(n.op) ? [n.column, n.op] : [n.column, n.op, n.value]);

export function treeText(g: Group | null): string {
    return g ? JSON.stringify(packed(g)) : "";
}

function field(t: unknown[]): Field | null {
    const [column, op, value = null] = t;
    if (typeof column !== "string" || !OPERATORS.includes(op as Operator)) return null;
    if (value !== null && typeof value !== "string" && !(typeof value === "number" && Number.isFinite(value))) return null;
    return { column: column.slice(0, TEXT_MAX), op: op as Operator, value: typeof value === "string" ? value.slice(0, TEXT_MAX) : value };
}

function node(t: unknown, depth: number, left: { n: number }): Node | null {
    if (Array.isArray(t)) return left.n-- > 0 ? field(t) : null;
    if (typeof t !== "object" || t === null || depth >= DEPTH_MOST) return null;
    const how = Array.isArray((t as { or?: unknown }).or) ? "or" : "and", children = (t as Record<string, unknown>)[how];
    if (!Array.isArray(children)) return null;
    return { how, children: children.slice(0, FIELDS_MOST).map((c) => node(c, depth + 1, left)).filter((c) => c !== null) };
}

export function treeOf(text: string | null): Group | null {
    try {
        const n = node(JSON.parse(text ?? ""), 0, { n: FIELDS_MOST });
        return n && isGroup(n) && n.children.length ? n : null;
    } catch {
        return null;
    }
}

/* ---- The request ---- */

export type Asked = { kind: "group"; conjunction: "and" | "or"; children: Asked[] } | { kind: "field"; columnName: string; operator: Operator; value: string | number | null };

export const asked = (columnName: string, operator: Operator, value: string | number | null): Asked => ({ kind: "field", columnName, operator, value });
export const joined = (conjunction: "and" | "or", ...children: Asked[]): Asked => ({ kind: "group", conjunction, children });

/* "2026-03-05" is the reader's whole day. */
function day(f: Field): Asked {
    const [y, m, d] = String(f.value).split("-").map(Number) as [number, number, number];
    const at = (days: number) => new Date(y, m - 1, d + days).toISOString(), is = (op: Operator, days: number) => asked(f.column, op, at(days));
    switch (f.op) {
    case "=": return joined("and", is(">=", 0), is("<", 1));
    case "!=": return joined("or", is("<", 0), is(">=", 1), asked(f.column, "isEmpty", null));
    case ">": return is(">=", 1);
    case "<=": return is("<", 1);
    default: return is(f.op, 0);
    }
}

function request(n: Node): Asked | null {
    if (!isGroup(n)) return !isWhole(n) ? null : kindOf(n.column) === "time" && !isAboutEmptiness(n.op) ? dayOf(n) : asked(n.column, n.op, isAboutEmptiness(n.op) ? null : n.value);
    const children = n.children.map(request).filter((c) => c !== null);
    return children.length ? joined(n.how, ...children) : null;
}

const dayOf = (f: Field): Asked | null => (/^\d{4}-\d\d-\d\d$/.test(String(f.value)) && !Number.isNaN(Date.parse(String(f.value))) ? day(f) : null);

/* null: it says nothing yet. */
export function requestOf(g: Group | null): Asked | null {
    return g && request(g);
}

/* ---- Words ---- */

const OPERATOR_WORDS: Record<Operator, string> = {
    "=": "is", "!=": "is not", "<": "<", "<=": "≤", ">": ">", ">=": "≥", contains: "contains", notContains: "does not contain", isEmpty: "is empty", notEmpty: "is not empty",
};
const TIME_WORDS: Partial<Record<Operator, string>> = { "=": "on", "!=": "not on", "<": "before", "<=": "on or before", ">": "after", ">=": "on or after" };

export const operatorWord = (op: Operator, kind: Kind): string => (kind === "time" && TIME_WORDS[op]) || (kind === "number" && op === "=" ? "=" : kind === "number" && op === "!=" ? "≠" : OPERATOR_WORDS[op]);

export function wordsOf(n: Node): string {
    if (!isGroup(n)) return `${n.column} ${operatorWord(n.op, kindOf(n.column))}${isAboutEmptiness(n.op) ? "" : ` ${n.value}`}`;
    return n.children.filter((c) => isGroup(c) || isWhole(c)).map((c) => (isGroup(c) && c.children.length > 1 ? `(${wordsOf(c)})` : wordsOf(c))).join(` ${n.how} `);
}
