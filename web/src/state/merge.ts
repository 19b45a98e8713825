/* Two people's changes of one text, by lines: what one changed, and both together where they touch different ones. */

const LINES_MOST = 2000; // of a table of so many lines squared a browser still has room

/* Pairs of equal lines, in order: the longest common subsequence. */
function common(a: string[], b: string[]): [number, number][] {
    const n = a.length, m = b.length, best = Array.from({ length: n + 1 }, () => new Uint16Array(m + 1));
    for (let i = n - 1; i >= 0; i--)
        for (let k = m - 1; k >= 0; k--) best[i]![k] = a[i] === b[k] ? best[i + 1]![k + 1]! + 1 : Math.max(best[i + 1]![k]!, best[i]![k + 1]!);
    const out: [number, number][] = [];
    for (let i = 0, k = 0; i < n && k < m;) {
        if (a[i] === b[k]) out.push([i++, k++]);
        else if (best[i + 1]![k]! >= best[i]![k + 1]!) i++;
        else k++;
    }
    return out;
}

/* Lines from..to of the old text became these. */
interface Change { from: number; to: number; lines: string[] }

/* What both begin and end with is not compared: as a rule that is nearly all. */
function changes(a: string[], b: string[]): Change[] {
    const out: Change[] = [], least = Math.min(a.length, b.length);
    let head = 0, tail = 0;
    while (head < least && a[head] === b[head]) head++;
    while (tail < least - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
    const between = common(a.slice(head, a.length - tail), b.slice(head, b.length - tail)).map(([p, q]) => [p + head, q + head] as const);
    let [i, k] = [head, head];
    for (const [p, q] of [...between, [a.length - tail, b.length - tail] as const]) {
        if (p > i || q > k) out.push({ from: i, to: p, lines: b.slice(k, q) });
        [i, k] = [p + 1, q + 1];
    }
    return out;
}

const linesOf = (text: string): string[] => (text === "" ? [] : text.split(/\r?\n/));
/* A text box has LF whatever it was given: those of the text that is kept are meant. */
const endOf = (text: string): string => (text.includes("\r\n") ? "\r\n" : "\n");
const isLong = (...all: string[][]): boolean => all.some((l) => l.length > LINES_MOST);

/* "- old", "+ new"; of a text too long to compare all of it. */
export function changedLines(was: string, is: string): string[] {
    const a = linesOf(was), b = linesOf(is);
    if (isLong(a, b)) return b.map((l) => `+ ${l}`);
    return changes(a, b).flatMap((c) => [...a.slice(c.from, c.to).map((l) => `- ${l}`), ...c.lines.map((l) => `+ ${l}`)]);
}

/* Mine with theirs; null: both changed the same place, or it is too long to tell. */
export function merged(base: string, mine: string, theirs: string): string | null {
    const of = linesOf(base), [a, b] = [linesOf(mine), linesOf(theirs)];
    if (isLong(of, a, b)) return null;
    const own = changes(of, a), other = changes(of, b);
    if (own.some((p) => other.some((q) => p.from <= q.to && q.from <= p.to))) return null;
    let at = 0;
    const out: string[] = [];
    for (const c of [...own, ...other].sort((p, q) => p.from - q.from)) {
        out.push(...of.slice(at, c.from), ...c.lines);
        at = c.to;
    }
    return [...out, ...of.slice(at)].join(endOf(theirs));
}
