/*
 * The one way to the master: typed by proto/openapi.yaml, cancelled with the page that asked, and told apart when it fails.
 * The session is a cookie that no script can read; whatever writes carries a header that a form of another site cannot send.
 */
import { signal } from "@preact/signals";
import type { Messages, Routes } from "./types.gen";

export type { Messages, Routes };

/* What the master said instead of an answer. status 0: it could not be reached. */
export class ApiError extends Error {
    constructor(readonly status: number, text: string) {
        super(text);
    }
}

/* Whether the last request reached the master. */
export const isReachable = signal(true);
/* Whether the master knows who asks; null: not asked yet. */
export const isSignedIn = signal<boolean | null>(null);

type Params = Record<string, string | number>;
type Query = Record<string, string | number | boolean | null | undefined | ReadonlyArray<string | number>>;

export interface Request<K extends keyof Routes> {
    path?: Params;
    query?: Routes[K]["query"];
    body?: Routes[K]["body"];
    signal?: AbortSignal;
}

/* "/a/{id}" with its variables and the query; what is undefined, null or "" is left out, lists repeat their key. */
export function addressOf(pattern: string, path: Params = {}, query: Query = {}): string {
    const filled = pattern.replace(/\{([\w.]+)\}/g, (_, name: string) => encodeURIComponent(String(path[name] ?? "")));
    const search = new URLSearchParams();
    for (const [key, value] of Object.entries(query))
        for (const v of Array.isArray(value) ? value : [value])
            if (v !== undefined && v !== null && v !== "") search.append(key, String(v));
    const text = search.toString();
    return text ? `${filled}?${text}` : filled;
}

async function errorOf(r: Response): Promise<ApiError> {
    try {
        const { error } = await r.json() as { error?: { error?: string } };
        return new ApiError(r.status, error?.error ?? r.statusText);
    } catch {
        return new ApiError(r.status, r.statusText || `status ${r.status}`);
    }
}

const ADDRESS_MOST = 4000; // the master takes 5 KiB of a request's head, and a browser's own lines need the rest

/* Said here, since the master would hang up on a longer one. */
function short(address: string): string {
    if (address.length <= ADDRESS_MOST) return address;
    throw new ApiError(414, `what is asked for takes ${address.length.toLocaleString("en")} bytes, and a request has room for ${ADDRESS_MOST.toLocaleString("en")}: fewer or shorter conditions, or fewer columns`);
}

interface Options { path?: Params; query?: Query; body?: unknown; accept?: string; signal?: AbortSignal }

async function send(route: string, options: Options): Promise<Response> {
    const [method = "GET", pattern = ""] = route.split(" ");
    const init: RequestInit = { method, signal: options.signal ?? null, credentials: "same-origin", headers: { "X-Det-Page": "1", ...(options.accept ? { Accept: options.accept } : {}) } };
    if (options.body !== undefined) init.body = JSON.stringify(options.body);
    const address = short(addressOf(pattern, options.path, options.query));
    let r: Response;
    try {
        r = await fetch(address, init);
    } catch (e) {
        if (options.signal?.aborted) throw e;
        isReachable.value = false;
        throw new ApiError(0, "the master does not answer");
    }
    isReachable.value = r.status !== 502 && r.status !== 503;
    if (r.status === 401) isSignedIn.value = false;
    if (!r.ok) throw await errorOf(r);
    return r;
}

/* Its body; one that ends too early is an error as any. */
async function bodyOf<T>(read: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    try {
        return await read;
    } catch (e) {
        if (signal?.aborted) throw e;
        throw new ApiError(0, "the answer broke off");
    }
}

/* One request and its answer, e.g. call("GET /api/v1/experiments", { query: { limit: 20 } }). */
export async function call<K extends keyof Routes>(route: K, options: Request<K> = {}): Promise<Routes[K]["answer"]> {
    const r = await send(route, options as { path?: Params; query?: Query; body?: unknown });
    const text = await bodyOf(r.text(), options.signal);
    return (text ? JSON.parse(text) : {}) as Routes[K]["answer"];
}

/* The page's own file as the master has it now. */
export async function askOwnPage(signal: AbortSignal): Promise<string> {
    return bodyOf((await send("GET /det/", { accept: "text/html", signal })).text(), signal);
}

/* A file as the browser holds it: a large one is on its disk, not in its memory. */
export async function fetched(route: keyof Routes, path: Params, accept: string): Promise<Blob> {
    return bodyOf((await send(route, { path, accept })).blob(), undefined);
}

/* The results of a stream of lines {"result": ...}; ends with it, or with options.signal. An error's line throws. `opened`: told once it is open, be there a line or not. */
export async function* stream<T>(route: keyof Routes, options: { path?: Params; query?: Query; signal?: AbortSignal; opened?: () => void } = {}): AsyncGenerator<T> {
    const r = await send(route, options);
    options.opened?.();
    const reader = r.body!.pipeThrough(new TextDecoderStream()).getReader();
    try {
        let rest = "";
        for (;;) {
            const { done, value } = await bodyOf(reader.read(), options.signal);
            if (done) return;
            const lines = (rest + value).split("\n");
            rest = lines.pop() ?? "";
            for (const line of lines) if (line.trim()) yield resultOf<T>(line);
        }
    } finally {
        await reader.cancel().catch(() => undefined);
    }
}

function resultOf<T>(line: string): T {
    const { result, error } = JSON.parse(line) as { result?: T; error?: { message?: string; error?: string } };
    if (error) throw new ApiError(500, error.message ?? error.error ?? "the stream broke");
    return result as T;
}
