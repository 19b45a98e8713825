// node build.mjs [FOLDER]: makes the page's files in FOLDER (web/dist). The same sources and lock give the same bytes.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const here = fileURLToPath(new URL(".", import.meta.url));
const out = process.argv[2] ?? join(here, "dist");
const FIRST_MOST_KB = 150, ALL_MOST_KB = 400; // gzip
process.chdir(here); // names of modules in what is made must not depend on where it is made

function withoutOld() {
    rmSync(join(out, "assets"), { recursive: true, force: true });
    mkdirSync(join(out, "assets"), { recursive: true });
}

const isPackage = (input) => input.startsWith("node_modules/");
function packagesOf(inputs) {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)\//;
    return [...new Set(inputs.filter(isPackage).map((i) => name.exec(i)[1]))].sort();
}

// Whoever has the page has the terms of what is in it.
function licences(packages) {
    return packages.map((name) => {
        const folder = join(here, "node_modules", name);
        const file = readdirSync(folder).find((f) => /^licen[cs]e/i.test(f));
        const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
        const text = file ? readFileSync(join(folder, file), "utf8").trim() : license;
        return `${name} ${version}\n\n${text}\n`;
    }).join("\n----\n\n");
}

function writeLicences(packages) {
    const text = licences(packages);
    const hash = createHash("sha256").update(text).digest("hex").slice(0, 8).toUpperCase();
    writeFileSync(join(out, "assets", `licences.${hash}.txt`), text);
    return `licences.${hash}.txt`;
}

const COMMON = {
    outdir: join(out, "assets"), bundle: true, minify: true, metafile: true, target: "es2022",
    entryNames: "[name].[hash]", chunkNames: "[name].[hash]", assetNames: "[name].[hash]",
    legalComments: "none", charset: "utf8", logLevel: "warning",
};
withoutOld();
const worker = await build({ ...COMMON, entryPoints: { worker: "src/charts/work/worker.ts" }, format: "iife" });
const [workerFile] = Object.keys(worker.metafile.outputs);
const made = await build({
    ...COMMON, entryPoints: { app: "src/app.tsx" }, splitting: true, format: "esm", jsx: "automatic", jsxImportSource: "preact",
    define: { WORKER: JSON.stringify(`/assets/${basename(workerFile)}`) },
});
const outputs = Object.entries(made.metafile.outputs);
const entry = outputs.find(([, o]) => o.entryPoint === "src/app.tsx");

// What is loaded later has no style sheet of its own: nothing would load it. All of its styles are in that of the first view.
function withoutLaterSheets() {
    const own = new Set(Object.keys(made.metafile.outputs[entry[1].cssBundle].inputs));
    for (const [file, o] of outputs) {
        if (!file.endsWith(".css") || file === entry[1].cssBundle) continue;
        const alone = Object.keys(o.inputs).filter((i) => !own.has(i));
        if (alone.length) throw new Error(`${alone} is imported by pages alone that are loaded later: import it in app.tsx`);
        rmSync(file);
    }
}

withoutLaterSheets();
const licencesFile = writeLicences(packagesOf(Object.keys({ ...worker.metafile.inputs, ...made.metafile.inputs })));
writeFileSync(join(out, "index.html"), readFileSync("src/index.html", "utf8")
    .replace("{{js}}", `/assets/${basename(entry[0])}`)
    .replace("{{css}}", `/assets/${basename(entry[1].cssBundle)}`)
    .replace("{{licences}}", `/assets/${licencesFile}`));

const size = (files) => files.reduce((n, f) => n + gzipSync(readFileSync(f)).length, 0) / 1024;
const first = size([entry[0], entry[1].cssBundle, ...entry[1].imports.filter((i) => i.kind === "import-statement").map((i) => i.path)]);
const all = size([workerFile, ...outputs.map(([f]) => f)].filter((f) => existsSync(f)));
console.log(`web: first view ${first.toFixed(1)} KB gzip, all ${all.toFixed(1)} KB`);
if (first > FIRST_MOST_KB || all > ALL_MOST_KB) {
    console.error(`web: more than the ${FIRST_MOST_KB} KB of the first view, or the ${ALL_MOST_KB} KB of all, that a reader is made to wait for: load later, or leave out, what made it grow`);
    process.exitCode = 1;
}
