/* Where in a YAML text a key stands: the deepest part of its path that is there. */
import { parser } from "@lezer/yaml";
import type { SyntaxNode } from "@lezer/common";
import { pathOf, type Mistake } from "../../state/mistakes";

export interface Place { from: number; to: number }

const children = (node: SyntaxNode, name: string): SyntaxNode[] => node.getChildren(name);

function nameOf(pair: SyntaxNode, text: string): string {
    const key = pair.getChild("Key"), raw = key ? text.slice(key.from, key.to) : "";
    return /^(["']).*\1$/s.test(raw) ? raw.slice(1, -1) : raw;
}

/* The map or list that a pair, an item or a document holds; null: a plain value. */
function insideOf(node: SyntaxNode): SyntaxNode | null {
    for (const kind of ["BlockMapping", "FlowMapping", "BlockSequence", "FlowSequence"]) {
        const found = node.getChild(kind);
        if (found) return found;
    }
    return null;
}

/* Names with dots of their own are tried too, the longest first. */
function pairOf(map: SyntaxNode, parts: (string | number)[], text: string): [SyntaxNode, number] | null {
    const pairs = children(map, "Pair");
    for (let n = parts.length; n > 0; n--) {
        const name = parts.slice(0, n).join("."), found = pairs.find((p) => nameOf(p, text) === name);
        if (found) return [found, n];
    }
    return null;
}

function next(at: SyntaxNode, parts: (string | number)[], text: string): [SyntaxNode, number] | null {
    if (at.name.endsWith("Mapping")) return pairOf(at, parts, text);
    const item = typeof parts[0] === "number" ? children(at, "Item")[parts[0]] : undefined;
    return item ? [item, 1] : null;
}

/* Without its value's other lines: what is marked is a line. */
function firstLine(from: number, to: number, text: string): Place {
    const start = from + (/^\s*/.exec(text.slice(from, to))?.[0].length ?? 0), end = text.indexOf("\n", start);
    return { from: start, to: Math.max(start, Math.min(to, end < 0 ? text.length : end)) };
}

/* The first line that says something, where the path's first key is not there either. */
export function placeOf(m: Mistake, text: string): Place {
    if (m.line > 0) return lineColumn(m.line, m.column, text);
    let parts = pathOf(m.path), holder: SyntaxNode | null = parser.parse(text).topNode.getChild("Document");
    let found: SyntaxNode | null = null;
    while (holder && parts.length) {
        const inside: SyntaxNode | null = insideOf(holder), step = inside && next(inside, parts, text);
        if (!step) break;
        [found, parts] = [step[0], parts.slice(step[1])];
        holder = found;
    }
    return found ? firstLine(found.from, found.to, text) : firstLine(0, text.length, text);
}

function lineColumn(line: number, column: number, text: string): Place {
    let from = 0;
    for (let i = 1; i < line; i++) {
        const end = text.indexOf("\n", from);
        if (end < 0) break;
        from = end + 1;
    }
    const end = text.indexOf("\n", from), to = end < 0 ? text.length : end;
    return { from: Math.min(to, from + Math.max(0, column - 1)), to };
}
