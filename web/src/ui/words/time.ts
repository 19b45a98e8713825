/* Times in the reader's zone and durations in two units. `now` is given, so that tests need no clock. */

const MINUTE = 60;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

const two = (n: number): string => String(n).padStart(2, "0");

/* Seconds as "0.42 s", "12 s", "3 min 4 s", "2 h 5 min", "4 d 3 h". "" for what is none. */
export function duration(seconds: number | null | undefined): string {
    if (seconds === null || seconds === undefined || !Number.isFinite(seconds)) return "";
    const s = Math.max(0, seconds);
    if (s < 10) return `${Number(s.toPrecision(2))} s`;
    const whole = Math.floor(s);
    if (whole < MINUTE) return `${whole} s`;
    if (whole < HOUR) return pair(whole, MINUTE, "min", 1, "s");
    if (whole < DAY) return pair(whole, HOUR, "h", MINUTE, "min");
    return pair(whole, DAY, "d", HOUR, "h");
}

function pair(s: number, big: number, bigName: string, small: number, smallName: string): string {
    const rest = Math.floor((s % big) / small);
    return `${Math.floor(s / big)} ${bigName}${rest ? ` ${rest} ${smallName}` : ""}`;
}

/* "2026-11-25 14:03:09" in the reader's zone; "" for what is no time. */
export function full(time: string | number | null | undefined): string {
    const d = new Date(time ?? NaN);
    if (Number.isNaN(d.getTime())) return "";
    const date = `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
    return `${date} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}

/* With milliseconds, for log lines. */
export function precise(time: string | number | null | undefined): string {
    const text = full(time);
    return text && `${text}.${String(new Date(time as string).getMilliseconds()).padStart(3, "0")}`;
}

/* "just now", "5 min ago", "3 d ago", and the date after a year or in the future. */
export function ago(time: string | null | undefined, now: number): string {
    const t = new Date(time ?? NaN).getTime();
    if (Number.isNaN(t)) return "";
    const s = (now - t) / 1000;
    if (s < -MINUTE || s >= YEAR) return full(t).slice(0, 10);
    if (s < MINUTE) return "just now";
    if (s < HOUR) return `${Math.floor(s / MINUTE)} min ago`;
    return s < DAY ? `${Math.floor(s / HOUR)} h ago` : `${Math.floor(s / DAY)} d ago`;
}

/* Seconds between two times; to `now` where the end is not there yet; null where there is no start. */
export function between(start: string | null | undefined, end: string | null | undefined, now: number): number | null {
    const a = new Date(start ?? NaN).getTime();
    const b = end ? new Date(end).getTime() : now;
    return Number.isNaN(a) || Number.isNaN(b) ? null : Math.max(0, (b - a) / 1000);
}
