/* The files that an experiment was submitted with: their tree, and one of them as lines. Names and contents are people's. */
import { call, type Messages } from "../../api/client";
import { visible } from "../../ui/words/ansi";
import { bytes } from "../../ui/words/format";

export type Node = Messages["experiment.v1.FileNode"];

export const SHOWN_BYTES = 1 << 20; // a longer file is for an editor
export const NODES_OPEN = 200; // of a tree that is shown with its folders open
export const LEVELS_OPEN = 20; // of folders; deeper ones are opened by hand

export async function askTree(experimentId: string, signal: AbortSignal): Promise<{ files: Node[] }> {
    return call("GET /api/v1/experiments/{experimentId}/file_tree", { path: { experimentId }, signal });
}

export async function askFile(experimentId: string, path: string, signal: AbortSignal): Promise<Uint8Array> {
    const { file } = await call("POST /api/v1/experiments/{experimentId}/file", { path: { experimentId }, body: { path }, signal });
    return Uint8Array.from(atob(file), (c) => c.charCodeAt(0));
}

/* Folders first, each by name. */
export function inOrder(files: Node[]): Node[] {
    return [...files].sort((a, b) => Number(b.isDir) - Number(a.isDir) || (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
}

/* All files of a tree, those of folders too. A path may have some thousand folders: too many for as many calls. */
export function filesOf(nodes: Node[]): Node[] {
    const out: Node[] = [], left = [...nodes].reverse();
    for (let n = left.pop(); n; n = left.pop()) {
        if (!n.isDir) out.push(n);
        else for (let i = n.files.length - 1; i >= 0; i--) left.push(n.files[i]!);
    }
    return out;
}

/* Whether a folder is open at first: all are, or `file` is below it, and it is not so deep that drawing what is open would be too many calls. */
export function beginsOpen(path: string, file: string, areOpen: boolean): boolean {
    return path.split("/").length <= LEVELS_OPEN && (areOpen || file.startsWith(`${path}/`));
}

/* What an entrypoint like "model_def:Trial" names, where it is there; "": nothing that can be told. */
export function entryFile(entrypoint: unknown, files: Node[]): string {
    const [, module] = /^([\w.]+):\w+$/.exec(typeof entrypoint === "string" ? entrypoint : "") ?? [];
    const wanted = module ? [".py", ".c"].map((end) => module.replaceAll(".", "/") + end) : [];
    return files.find((f) => wanted.includes(f.path))?.path ?? "";
}

/* A file as it is read: its lines, or why there are none. */
export type Text = { text: string; lines: number } | { why: string };

/* Why a file of that size is not even asked for; "": it is. */
export function tooLong(size: number): string {
    return size > SHOWN_BYTES ? `It has ${bytes(size)}; files of up to ${bytes(SHOWN_BYTES)} are shown here.` : "";
}

/* Bytes that are no UTF-8, or have a zero among them, are no text; control characters and marks that turn the direction are made visible. */
export function textOf(file: Uint8Array): Text {
    const isBinary = file.includes(0);
    let text: string;
    try {
        if (isBinary) throw new TypeError();
        text = new TextDecoder("utf-8", { fatal: true }).decode(file);
    } catch {
        return { why: `It is binary: ${bytes(file.length)} that are no text.` };
    }
    if (!text) return { why: "It is empty." };
    const lines = text.replace(/\r\n?/g, "\n").replace(/\n$/, "");
    return { text: visible(lines), lines: lines.split("\n").length };
}

export const numbers = (lines: number): string => Array.from({ length: lines }, (_, i) => i + 1).join("\n");

/* Where the whole comes from, and one file of it. */
export const wholeAddress = (id: number): string => `/experiments/${id}/model_def`;
export const fileAddress = (id: number, path: string): string => `/experiments/${id}/file/download?path=${encodeURIComponent(path)}`;
