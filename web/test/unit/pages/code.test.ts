import assert from "node:assert/strict";
import { test } from "node:test";
import { beginsOpen, entryFile, filesOf, inOrder, numbers, SHOWN_BYTES, textOf, tooLong, type Node } from "../../../src/pages/experiment/code_data";

const node = (path: string, files: Node[] | null = null): Node => ({ path, name: path.split("/").at(-1)!, modifiedTime: null, contentLength: 1, isDir: files !== null, contentType: "", files: files ?? [] });
const read = (text: string) => textOf(new TextEncoder().encode(text));

test("folders come first, each by name; the file that an entrypoint names is found", () => {
    const tree = [node("b.py"), node("a", [node("a/z.c"), node("a/y", [node("a/y/x")])]), node("A.md")], files = filesOf(tree);
    assert.deepEqual(inOrder(tree).map((n) => n.name), ["a", "A.md", "b.py"]);
    assert.deepEqual(files.map((f) => f.path), ["b.py", "a/z.c", "a/y/x", "A.md"]);
    assert.deepEqual(["b:Trial", "a.z:T", "c:T", "b", ["b:T"], "a/z:T", undefined].map((e) => entryFile(e, files)), ["b.py", "a/z.c", "", "", "", "", ""]);
});

/* A file below so many folders, all named a. */
function deep(levels: number): Node {
    let path = `${"a/".repeat(levels)}f`, at = node(path);
    while (path.includes("/")) at = node((path = path.slice(0, path.lastIndexOf("/"))), [at]);
    return at;
}

test("a path of very many folders: its file is found, and below some levels nothing opens but by hand", () => {
    const file = filesOf([deep(50_000)])[0]!.path;
    assert.equal(file.length, 100_001);
    const at = (levels: number) => Array(levels).fill("a").join("/");
    for (const areOpen of [false, true]) assert.deepEqual([1, 20, 21, 300].map((n) => beginsOpen(at(n), file, areOpen)), [true, true, false, false]);
    assert.deepEqual([beginsOpen("b", file, false), beginsOpen("b", file, true)], [false, true]);
});

test("lines end as they do anywhere; nothing in a file hides, or turns the text around", () => {
    assert.deepEqual(read("a\r\nb\rc\n\td"), { text: "a\nb\nc\n\td", lines: 4 });
    assert.deepEqual(read("one\n"), { text: "one", lines: 1 });
    assert.deepEqual(read("if admin:\u202e\u2066\u001b[31m"), { text: "if admin:\ufffd\ufffd\u241b[31m", lines: 1 });
    assert.equal(numbers(3), "1\n2\n3");
});

test("what is no text is named as what it is, and what is too long is not asked for", () => {
    for (const bytes of [[0x7f, 0x45, 0x4c, 0x46, 0], [0xff, 0xfe, 0x41], [0xc3]]) assert.deepEqual(textOf(Uint8Array.from(bytes)), { why: `It is binary: ${bytes.length} B that are no text.` });
    assert.deepEqual(read(""), { why: "It is empty." });
    assert.deepEqual([tooLong(SHOWN_BYTES), tooLong(3 * SHOWN_BYTES)], ["", "It has 3 MiB; files of up to 1 MiB are shown here."]);
});
