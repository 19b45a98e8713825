/* The code of an experiment: the tree of its files, and the one that the address names, to be read. */
import { useState } from "preact/hooks";
import { expQuery } from "../../state/address";
import { useLive } from "../../state/live";
import { path } from "../../state/router";
import { bytes, count } from "../../ui/words/format";
import { Name, shown } from "../../ui/words/name";
import { Problem } from "../problem";
import { askFile, askTree, beginsOpen, entryFile, fileAddress, filesOf, inOrder, NODES_OPEN, numbers, textOf, tooLong, wholeAddress, type Node } from "./code_data";
import type { Seen } from "./experiment";

const ENTRIES = 500; // of a folder that are listed at first

interface TreeProps { nodes: Node[]; seen: Seen; file: string; areOpen: boolean }

function Folder({ node, ...rest }: { node: Node } & Omit<TreeProps, "nodes">) {
    const [isOpen, setOpen] = useState(() => beginsOpen(node.path, rest.file, rest.areOpen));
    return <details open={isOpen} onToggle={(e) => setOpen(e.currentTarget.open)}>
        <summary><Name text={node.name} />/</summary>{isOpen && <Tree nodes={node.files} {...rest} />}
    </details>;
}

function Tree({ nodes, seen, file, areOpen }: TreeProps) {
    const [most, setMost] = useState(ENTRIES), all = inOrder(nodes);
    return <ul>
        {all.slice(0, most).map((n, i) => <li key={`${i} ${n.path}`}>{n.isDir ? <Folder node={n} seen={seen} file={file} areOpen={areOpen} />
            : <a href={path.value + expQuery({ ...seen.view, file: n.path })} aria-current={n.path === file ? "true" : undefined}><Name text={n.name} /></a>}</li>)}
        {all.length > most && <li><button type="button" onClick={() => setMost(most + ENTRIES)}>{count(all.length - most, "more")}</button></li>}
    </ul>;
}

function Lines({ id, node }: { id: number; node: Node }) {
    const long = tooLong(node.contentLength);
    const live = useLive(`file ${id} ${node.path}`, "", async (s) => (long ? { why: long } : textOf(await askFile(String(id), node.path, s))), () => null);
    if (!live.data) return live.error ? <Problem error={live.error} what="The file" /> : <p class="soft">Asking…</p>;
    if ("why" in live.data) return <p>{live.data.why} Download it to see what it holds.</p>;
    return <div class="code" tabIndex={0} role="group" aria-label={`Lines of ${shown(node.path)}`}>
        <pre class="code-numbers" aria-hidden="true">{numbers(live.data.lines)}</pre><pre class="code-text" dir="ltr">{live.data.text}</pre>
    </div>;
}

function File_({ id, node }: { id: number; node: Node }) {
    return <section class="panel" aria-label="File">
        <header><h2><code><Name text={node.path} /></code></h2><span class="soft">{bytes(node.contentLength)}</span>
            <a class="button push" href={fileAddress(id, node.path)} download={node.name}>Download</a></header>
        <Lines key={node.path} id={id} node={node} />
    </section>;
}

export function CodeTab({ seen }: { seen: Seen }) {
    const { id, config, modelDefinitionSize } = seen.exp;
    const live = useLive(`code ${id}`, "", (s) => askTree(String(id), s), () => null);
    if (!live.data) return live.error ? <Problem error={live.error} what="The files" /> : <p class="soft">Asking…</p>;
    const files = filesOf(live.data.files), file = seen.view.file || entryFile(config?.["entrypoint"], files), node = files.find((f) => f.path === file);
    if (!files.length) return <p>It was submitted without files.</p>;
    return <>
        <p class="row"><span>{count(files.length, "file")}, {bytes(files.reduce((n, f) => n + f.contentLength, 0))}{modelDefinitionSize ? `; ${bytes(modelDefinitionSize)} packed` : ""}</span>
            <a class="button push" href={wholeAddress(id)} download title={`det experiment download-model-def ${id}`}>Download all</a></p>
        <div class="code-pair">
            <nav class="code-tree" aria-label="Files"><Tree nodes={live.data.files} seen={seen} file={file} areOpen={files.length <= NODES_OPEN} /></nav>
            {node ? <File_ id={id} node={node} /> : <p class="soft">{file ? <>There is no file <code><Name text={file} /></code> in it.</> : "Choose a file."}</p>}
        </div>
    </>;
}
