/* What a checkpoint consists of: each file with its size and its hash, as xxhsum or sha256sum print it. */
import { call, type Messages } from "../../api/client";
import { useLive } from "../../state/live";
import { Copy } from "../../ui/words/copy";
import { bytes, count } from "../../ui/words/format";
import { shown } from "../../ui/words/name";
import { Problem } from "../problem";

type Checkpoint = Messages["checkpoint.v1.Checkpoint"];

export interface File { name: string; size: number; /* "xxh128" or "sha256", and "" with its digits where none is known. */ kind: string; digits: string }

/* Those that are there now, by name; what was deleted has a hash still. */
export function filesOf(c: Pick<Checkpoint, "resources" | "hashes">): File[] {
    const of = (name: string): [string, string] => {
        const text = c.hashes && Object.hasOwn(c.hashes, name) ? String(c.hashes[name]) : "", cut = text.indexOf(":");
        return cut < 0 ? ["", ""] : [text.slice(0, cut), text.slice(cut + 1)];
    };
    return Object.entries(c.resources).filter(([name]) => !name.endsWith("/")).sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([name, n]) => ({ name, size: Number(n), kind: of(name)[0], digits: of(name)[1] }));
}

/* As `xxhsum -c` and `sha256sum -c` read it. */
export function sumsOf(files: File[]): string {
    return files.filter((f) => f.digits && !/[\n\r]/.test(f.name)).map((f) => `${f.digits}  ${f.name}\n`).join("");
}

/* Asked for when somebody looks: a list of checkpoints has no hashes. */
export function Files({ uuid }: { uuid: string }) {
    const live = useLive(`files of ${uuid}`, "", async (signal) => (await call("GET /api/v1/checkpoints/{checkpointUuid}", { path: { checkpointUuid: uuid }, signal })).checkpoint, () => null);
    if (!live.data) return live.error ? <Problem error={live.error} what="The files" /> : <p class="soft">Asking…</p>;
    const files = filesOf(live.data), hashed = files.filter((f) => f.digits), kind = hashed[0]?.kind;
    return <><table class="files"><thead><tr><th scope="col">file</th><th scope="col">size</th><th scope="col">{kind ?? "hash"}</th></tr></thead>
        <tbody>{files.map((f) => <tr key={f.name}><td><code>{shown(f.name)}</code></td><td>{bytes(f.size)}</td><td>{f.digits && <code>{f.digits}</code>}</td></tr>)}</tbody></table>
        {kind ? <p class="row"><Copy text={sumsOf(files)} words="Copy the hashes" /><span class="soft">as <code>{kind === "xxh128" ? "xxhsum" : "sha256sum"} -c</code> reads them; metadata.json, which holds them, has none</span></p>
            : <p class="soft">No hashes are known: it was reported without them. What its metadata.json holds is looked at whenever it is read.</p>}</>;
}

/* Opens and shuts them. */
export function FilesButton({ c, isOpen, turn }: { c: Checkpoint; isOpen: boolean; turn: () => void }) {
    const n = filesOf(c).length;
    return n ? <button type="button" class="plain" aria-expanded={isOpen} onClick={turn}>{count(n, "file")}</button> : <>none</>;
}
