/* A window of log lines that grows at both ends, in order of id, each line once, and never beyond its size. */

export interface Line {
    id: number;
    time: string;
    level: string;
    rank: number | null;
    source: string;
    text: string;
}

/* As the API sends one. */
export interface Sent {
    id: string;
    timestamp?: string | null;
    level?: string;
    log?: string;
    rankId?: number;
    source?: string;
    stdtype?: string;
}

export function line(s: Sent): Line {
    return {
        id: Number(s.id),
        time: s.timestamp ?? "",
        level: (s.level ?? "").replace("LOG_LEVEL_", "").replace("UNSPECIFIED", ""),
        rank: s.rankId ?? null,
        source: s.source ?? s.stdtype ?? "",
        text: (s.log ?? "").replace(/\r?\n$/, ""),
    };
}

/* Both in order of id. */
export function merge(a: Line[], b: Line[]): Line[] {
    if (!b.length) return a;
    if (!a.length || a[a.length - 1]!.id < b[0]!.id) return a.length ? a.concat(b) : b;
    const out: Line[] = [];
    let [i, j] = [0, 0];
    while (i < a.length || j < b.length) {
        const next = j >= b.length || (i < a.length && a[i]!.id <= b[j]!.id) ? a[i++]! : b[j++]!;
        if (!out.length || out[out.length - 1]!.id < next.id) out.push(next);
    }
    return out;
}

/* What is kept of a window that became too long: the end at which the reader is. */
export function trim(lines: Line[], most: number, end: "newest" | "oldest"): Line[] {
    if (lines.length <= most) return lines;
    return end === "newest" ? lines.slice(lines.length - most) : lines.slice(0, most);
}

/* One line as a file of a log has it. */
export function asText(l: Line, plain: (text: string) => string): string {
    const rank = l.rank === null ? "" : ` [rank=${l.rank}]`;
    return `[${l.time}]${rank} ${l.level ? l.level + ": " : ""}${plain(l.text)}\n`;
}

/* The last microsecond before a time: what is after it may be of that time. */
export function justBefore(time: Date): string {
    return new Date(time.getTime() - 1).toISOString().replace("Z", "999Z");
}
