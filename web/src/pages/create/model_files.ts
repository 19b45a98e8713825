/* A folder that its reader chose, as the files of a model definition. */
import type { Messages } from "../../api/client";

type File_ = Messages["util.v1.File"];
export const FILES_BYTES_MAX = 64 << 20; // as text in base64 within what the master takes
const REGULAR = 48, MODE = 0o100644;
const SKIPPED = /(^|\/)(\.git|__pycache__|\.ipynb_checkpoints)(\/|$)/;

export interface Chosen { name: string; path: string; size: number; file: File }

/* The folder's own name is not part of a path within it. */
export function chosenOf(list: Iterable<File>): Chosen[] {
    return [...list].map((file) => ({ name: file.name, path: (file.webkitRelativePath || file.name).replace(/^[^/]*\//, ""), size: file.size, file }))
        .filter((f) => !SKIPPED.test(f.path)).sort((a, b) => (a.path < b.path ? -1 : 1));
}

export const sizeOf = (files: Chosen[]): number => files.reduce((n, f) => n + f.size, 0);

function base64(bytes: Uint8Array): string {
    let text = "";
    for (let i = 0; i < bytes.length; i += 0x8000) text += String.fromCharCode(...bytes.subarray(i, i + 0x8000));
    return btoa(text);
}

export async function packed(files: Chosen[]): Promise<File_[]> {
    if (sizeOf(files) > FILES_BYTES_MAX) throw new Error("the folder has more than 64 MiB: take out what the model does not need");
    const out: File_[] = [];
    for (const f of files)
        out.push({ path: f.path, type: REGULAR, mode: MODE, uid: 0, gid: 0, mtime: String(Math.floor(f.file.lastModified / 1000)),
            content: base64(new Uint8Array(await f.file.arrayBuffer())) });
    return out;
}
