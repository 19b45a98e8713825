// node unit.mjs: the unit tests (test/unit/*/*.test.ts), each bundled, by node's own runner.
import { build } from "esbuild";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = fileURLToPath(new URL(".", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "det-web-unit-"));
try {
    const rooms = readdirSync(join(here, "test/unit"), { withFileTypes: true }).filter((d) => d.isDirectory()).map((d) => d.name);
    const tests = rooms.flatMap((r) => readdirSync(join(here, "test/unit", r)).filter((f) => f.endsWith(".test.ts")).map((f) => join(r, f))).sort();
    await build({
        entryPoints: tests.map((f) => join(here, "test/unit", f)), outdir: folder, outbase: join(here, "test/unit"), bundle: true, platform: "node", format: "esm",
        target: "node18", jsx: "automatic", jsxImportSource: "preact", outExtension: { ".js": ".mjs" }, sourcemap: "inline",
        logLevel: "warning", loader: { ".css": "empty" },
        banner: { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' }, // packages that node has as CommonJS
    });
    const files = tests.map((f) => join(folder, f.replace(/\.ts$/, ".mjs")));
    process.exitCode = spawnSync(process.execPath, ["--enable-source-maps", "--test", ...files], { stdio: "inherit", env: { ...process.env, TZ: "Asia/Kolkata" } }).status ?? 1;
} finally {
    rmSync(folder, { recursive: true, force: true });
}
