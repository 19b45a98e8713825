/*
 * What Determined's page kept of its list of a project's experiments, as an address of ours. It is only read: whoever
 * goes back to that page finds all as it was.
 */
import type { Messages } from "../api/client";
import { fieldsOf, kindOf, SEARCHED, treeOf } from "./filter_tree";
import { COLUMNS, columnsOf, isKey, isMetric, LIST_VIEW, listQuery, listView, type Column } from "./list_address";

type Setting = Messages["user.v1.UserWebSetting"];
type Text = unknown[] | Record<string, unknown[]>;

const DAY = "2026-03-05".length; // it sent midnight in UTC of the day that was chosen
const OURS = new Map<string, Column>(COLUMNS.map((c) => [SEARCHED[c], c]));
const ours = (name: string): string => OURS.get(name) ?? name;

/* Values are JSON, and a text among them may be JSON once more. */
function parsed(text: string | undefined): unknown {
    try {
        const v: unknown = JSON.parse(text ?? "");
        return typeof v === "string" && /^[[{]/.test(v) ? JSON.parse(v) : v;
    } catch {
        return undefined;
    }
}

/* A node of SearchExperiments' filter as the address has it; null: it says nothing. */
function packed(node: unknown): Text | null {
    if (typeof node !== "object" || node === null) return null;
    const n = node as { kind?: unknown; conjunction?: unknown; children?: unknown; columnName?: unknown; operator?: unknown; value?: unknown };
    const isTime = kindOf(String(n.columnName)) === "time", value = n.value ?? null;
    if (n.kind !== "group") return [n.columnName, n.operator, isTime && value !== null ? String(value).slice(0, DAY) : value];
    const children = (Array.isArray(n.children) ? n.children : []).map(packed).filter((c) => c !== null);
    return children.length ? { [n.conjunction === "or" ? "or" : "and"]: children } : null;
}

/* How many conditions it has. */
function size(t: Text): number {
    return Array.isArray(t) ? 1 : Object.values(t).flat().reduce((n: number, c) => n + size(c as Text), 0);
}

function sortOf(text: unknown): string[] {
    return (typeof text === "string" ? text.split(",") : []).map((part) => {
        const at = part.indexOf("="), key = ours(part.slice(0, at));
        return part.slice(at + 1) === "desc" ? `-${key}` : key;
    }).filter(isKey);
}

/* left: how many of its conditions our list cannot have, which are missing in the address. */
export interface Former { address: string; left: number }

/* null: nothing was kept that this page shows otherwise than by itself. */
export function formerList(settings: readonly Setting[], project: number): Former | null {
    const of = new Map(settings.filter((s) => s.storagePath === `experimentListingForProject${project}`).map((s) => [s.key, s.value]));
    const set = parsed(of.get("filterset")) as { filterGroup?: unknown; showArchived?: unknown } | null | undefined, named = parsed(of.get("columns"));
    const tree = packed(set?.filterGroup), columns = Array.isArray(named) ? named.filter((c): c is string => typeof c === "string") : [], sort = sortOf(parsed(of.get("sortString")));
    const whole: Text = { and: [["projectId", "=", project], ...(tree && "and" in tree ? tree["and"]! : tree ? [tree] : [])] };
    const view = { ...LIST_VIEW, sort: sort.length ? sort : LIST_VIEW.sort, archived: set?.showArchived === true ? "too" as const : "no" as const, columns: columnsOf(columns.map(ours).join(",")),
        hps: columns.filter((c) => c.startsWith("hp.")).map((c) => c.slice(3)), metrics: columns.filter(isMetric) };
    const pinned = parsed(of.get("pinnedColumnsCount")), isHeated = parsed(of.get("heatmapOn")), skipped = parsed(of.get("heatmapSkipped"));
    const look = { pinned: typeof pinned === "number" ? pinned : null, heat: isHeated === true ? true : null,
        unheated: isHeated === true && Array.isArray(skipped) ? skipped.filter((c): c is string => typeof c === "string").map(ours) : [] };
    const isKept = tree !== null || view.sort !== LIST_VIEW.sort || columns.length > 0 || view.archived !== "no" || look.pinned !== null || look.heat !== null;
    const query = isKept ? listQuery({ ...view, ...look, tree: treeOf(JSON.stringify(whole)) }) : "";
    const shown = listView(query);
    return query && shown.tree ? { address: `/det/experiments${listQuery(shown)}`, left: size(whole) - fieldsOf(shown.tree).length } : null;
}
