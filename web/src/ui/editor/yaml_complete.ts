/* What could be written at a place of a configuration: keys of the map that it is in, or the words that its key takes. */
import { SCHEMA } from "../../api/schema.gen";

export interface Offer { text: string; detail: string }
export interface Offers { from: number; isKey: boolean; of: Offer[] }

const SPACE = ["type", "base", "minval", "maxval", "vals", "val", "count"]; // of a hyperparameter that is searched
const TYPES = ["const", "int", "double", "log", "categorical"];
const LINE = /^(\s*)(-\s+)?(?:"([^"]+)"|'([^']+)'|([^\s#"'-][^:#]*?))\s*:(?:\s|$)/;

/* "a.b[]" of what is written `column` wide into the text, below the lines before it; "" at the top. */
export function parentOf(before: readonly string[], column: number, isItem: boolean): string {
    const parts: string[] = [];
    let at = column, list = isItem ? "[]" : "";
    for (let i = before.length - 1; i >= 0 && (at > 0 || list); i--) {
        const m = LINE.exec(before[i]!);
        if (!m) continue;
        const indent = m[1]!.length, own = indent + (m[2]?.length ?? 0), isHolder = own < at || (own === at && list !== "" && !m[2]);
        if (!isHolder) {
            if (own === at && m[2] && !list) [at, list] = [indent, "[]"]; // the first key of the item that this is in
            continue;
        }
        parts.unshift((m[3] ?? m[4] ?? m[5])! + list);
        [at, list] = m[2] ? [indent, "[]"] : [own, ""];
    }
    return parts.join(".");
}

const join = (parent: string, key: string): string => (parent ? `${parent}.${key}` : key);
const isSearched = (parent: string): boolean => /^hyperparameters\./.test(parent);

function keysOf(parent: string): Offer[] {
    if (isSearched(parent)) return SPACE.map((text) => ({ text: `${text}: `, detail: "" }));
    const prefix = parent ? `${parent}.` : "";
    return SCHEMA.filter((k) => k.path.startsWith(prefix) && !/[.[]/.test(k.path.slice(prefix.length)))
        .map((k) => ({ text: `${k.path.slice(prefix.length)}: `, detail: k.isIdle ? "has no effect here" : k.words.slice(0, 3).join(", ") }));
}

function wordsOf(parent: string, key: string): Offer[] {
    if (isSearched(parent)) return key === "type" ? TYPES.map((text) => ({ text, detail: "" })) : [];
    return (SCHEMA.find((k) => k.path === join(parent, key))?.words ?? []).map((text) => ({ text, detail: "" }));
}

/* What fits the text up to `at`; null: nothing is known there. */
export function offersAt(text: string, at: number): Offers | null {
    const lines = text.slice(0, at).split("\n"), line = lines.pop()!;
    const value = /^(\s*)(-\s+)?([\w]+):\s+(\S*)$/.exec(line), key = /^(\s*)(-\s+)?(\w*)$/.exec(line);
    const m = value ?? key;
    if (!m) return null;
    const indent = m[1]!.length, parent = m[2] ? parentOf(lines, indent, true) : parentOf(lines, indent, false);
    const of = value ? wordsOf(parent, value[3]!) : keysOf(parent);
    return of.length ? { from: at - (value ? value[4]! : m[3]!).length, isKey: !value, of } : null;
}
