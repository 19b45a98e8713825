/* What the master says of a configuration, taken apart: of each mistake the key it is at, or the line and column. */

export interface Mistake {
    /* "searcher.max_length", "bind_mounts[1].host_path"; "": of the whole. */
    path: string;
    /* Both from 1; 0: not told. */
    line: number;
    column: number;
    text: string;
}

const TITLE = "experiment configuration: ";
const KEY = /^([^\s:"]+|[^:"\n]+?): (.*)$/;

function lineOf(text: string): Mistake | null {
    const at = /^YAML: line (\d{1,9}), column (\d{1,9}): (.*)$/s.exec(text);
    return at ? { path: "", line: Number(at[1]), column: Number(at[2]), text: at[3]! } : null;
}

function one(text: string): Mistake {
    const key = KEY.exec(text);
    return lineOf(text) ?? (key ? { path: key[1]!, line: 0, column: 0, text: key[2]! } : { path: "", line: 0, column: 0, text });
}

/* One mistake a line after a title, or one behind the title; what is told in another way is one of the whole. */
export function mistakesOf(said: string): Mistake[] {
    const text = said.startsWith(TITLE) ? said.slice(TITLE.length) : said;
    const many = /^\d+ mistakes:\n/.exec(text);
    if (many) return text.slice(many[0].length).split("\n").filter(Boolean).map(one);
    return said === text ? [lineOf(text) ?? { path: "", line: 0, column: 0, text }] : [one(text)];
}

/* "a.b[2].c" as ["a", "b", 2, "c"]. */
export function pathOf(path: string): (string | number)[] {
    const parts: (string | number)[] = [];
    for (const m of path.matchAll(/([^.[\]]+)|\[(\d{1,9})\]/g)) parts.push(m[1] ?? Number(m[2]));
    return parts;
}
