// The code of an experiment: its tree, a file with its lines, what is no text or too long, hostile names; by keys, on a phone, as files.
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { api, check, create, fitsIn, pictures, until, url } from "./harness.mjs";

const EVIL = "<img src=x onerror=alert(1)>.py", TURNED = "\u202egnp.exe", CODE = "import os\r\n\r\nclass Trial:\r\n\tpass  # \u202e </pre><script>alert(1)</script>\r\n";
const FILES = { "model_def.py": CODE, "lib/deep/util.py": "x = 1\n", [EVIL]: "evil = 1\n", [TURNED]: "turned\n", "weights.bin": "\0\u0001\u0002", "empty.txt": "", "long.txt": "x".repeat(99).concat("\n").repeat(15_000),
    [`${"n".repeat(90)}.txt`]: `${"w".repeat(300)}\n` };
const config = { name: "with code", entrypoint: "model_def:Trial", hyperparameters: {}, searcher: { name: "single", metric: "x", max_length: { batches: 1 } } };

async function submitted() {
    const file = ([path, text]) => ({ path, type: 48, mode: 0o100644, uid: 0, gid: 0, mtime: "1700000000", content: Buffer.from(text).toString("base64") });
    return (await api("POST", "/experiments", { config: JSON.stringify(config), activate: false, modelDefinition: Object.entries(FILES).map(file) })).experiment.id;
}

const saved = async (page, link) => {
    const [file] = await Promise.all([page.waitForEvent("download"), link.click()]);
    return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
};

export default async function ({ page }) {
    const id = await submitted(), tree = page.getByRole("navigation", { name: "Files" }), file = page.getByRole("region", { name: "File" });
    await page.goto(`${url}/det/experiments/${id}`);
    await page.getByRole("navigation", { name: "Parts of the experiment" }).getByRole("link", { name: "code" }).click();
    const lines = file.getByRole("group", { name: "Lines of model_def.py" }); // what the entrypoint names
    await lines.waitFor();
    const [numbers, text] = await lines.locator("pre").allTextContents();
    check(numbers === "1\n2\n3\n4" && text === "import os\n\nclass Trial:\n\tpass  # \ufffd </pre><script>alert(1)</script>", `${numbers}: ${text}`);
    check(await page.locator("main :is(img, script, iframe):not([role])").count() === 0, "a name or a line became an element");
    await pictures(page, "experiment-code");
    const opens = async (name, words) => {
        await tree.getByRole("link", { name, exact: true }).focus();
        await page.keyboard.press("Enter");
        await file.getByText(words).waitFor();
    };
    await opens("weights.bin", "It is binary: 3 B that are no text.");
    await opens("empty.txt", "It is empty.");
    await opens("long.txt", "It has 1.43 MiB; files of up to 1 MiB are shown here.");
    await pictures(page, "experiment-code-long");
    await opens(EVIL, "evil = 1");
    await opens("\ufffdgnp.exe", "turned");
    check(new URL(page.url()).searchParams.get("file") === TURNED, page.url());
    await tree.getByText("lib/").press("Enter");
    await tree.getByRole("link", { name: "util.py" }).waitFor({ state: "detached" }); // few files: folders begin open
    await tree.getByText("lib/").press("Enter");
    await opens("util.py", "x = 1");
    await page.goBack();
    await file.getByText("turned").waitFor();
    await page.goto(`${url}/det/experiments/${id}/code?filePath=lib%2Fdeep%2Futil.py`); // as links of old have it
    await file.getByText("x = 1").waitFor();
    const one = await saved(page, file.getByRole("link", { name: "Download" })), all = await saved(page, page.getByRole("link", { name: "Download all" }));
    check(one.name === "util.py" && one.bytes.toString() === "x = 1\n", `${one.name}: ${one.bytes}`);
    check(/^exp\d+_with.code_model_def\.tar\.gz$/.test(all.name) && gunzipSync(all.bytes).includes("x = 1\n"), all.name);
    await page.goto(`${url}/det/experiments/${id}?tab=code&file=gone`);
    await page.getByText("There is no file gone in it.").waitFor();
    await page.setViewportSize({ width: 320, height: 800 });
    await tree.getByRole("link", { name: /^n+\.txt$/ }).click();
    await file.getByText("www").waitFor();
    await fitsIn(page, "code");
    await file.scrollIntoViewIfNeeded();
    await pictures(page, "experiment-code-small");
    await page.setViewportSize({ width: 1400, height: 1000 });
    const none = await create({ ...config, entrypoint: ["true"] }, null, false);
    await page.goto(`${url}/det/experiments/${none}?tab=code`);
    await page.getByText("It was submitted without files.").waitFor();
    for (const e of [id, none]) await api("POST", `/experiments/${e}/kill`, {});
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_CANCELED", "it to have ended");
}
