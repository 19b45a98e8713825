// Three mistakes are marked at their lines while they are typed; mended, it is taken, with its files. What is typed survives a reload.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { api, check, isValidation, pictures, until, url } from "./harness.mjs";

const WRONG = `# by hand
name: typed in the page
entrypoint: [sh, -c, "cat note.txt; sleep 600"]
max_restarts: -1
searcher:
  name: singel
  metric: x
  max_length: {batches: 1}
hyperparameters: {}
resourcez: {}
`;
const mended = WRONG.replace("-1", "0").replace("singel", "single").replace("resourcez: {}\n", "");

async function write(page, text) {
    await page.getByRole("textbox", { name: "Configuration" }).click();
    for (const key of ["Control+a", "Delete"]) await page.keyboard.press(key);
    await page.keyboard.insertText(text);
}

/* Keys and words of the master's schema, by keys alone. */
async function completes(page) {
    const offers = page.getByRole("listbox").getByRole("option");
    await write(page, "searcher:\n  name: single\n  smal");
    await page.keyboard.type("l");
    await offers.filter({ hasText: "smaller_is_better" }).waitFor();
    await pictures(page, "create-offers");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.locator(".cm-line", { hasText: "smaller_is_better:" }).waitFor();
    await page.keyboard.press("Control+Space");
    await offers.filter({ hasText: "false" }).waitFor();
    await page.keyboard.press("Escape");
}

export default async function ({ page }) {
    page.mayFail = [isValidation];
    await page.goto(`${url}/det/experiments`);
    await page.getByRole("link", { name: "New experiment" }).click();
    await page.locator(".cm-content").waitFor();
    await page.getByText("The master would take it.").waitFor();
    await pictures(page, "create");
    await completes(page);
    await write(page, WRONG);
    const list = page.getByRole("list", { name: "Mistakes" }), lines = () => list.getByRole("button").allInnerTexts();
    await until(async () => (await lines()).sort().join() === "line 10,line 4,line 6", "the three mistakes at their lines");
    await page.getByText("3 mistakes: it would not be taken.").waitFor();
    await until(async () => await page.locator(".cm-lint-marker-error").count() === 3, "a mark beside each line");
    await pictures(page, "create-mistakes");
    await list.getByRole("button", { name: "line 6" }).click();
    await page.locator(".cm-activeLine", { hasText: "singel" }).waitFor();
    await page.reload();
    await page.locator(".cm-content").getByText("singel").waitFor();
    await write(page, mended.replace("metric: x", "metric: [x"));
    await until(async () => /^line [678]$/.test((await lines()).join()), "what is no YAML to be marked");
    await write(page, mended);
    await page.getByText("The master would take it.").waitFor();
    const folder = mkdtempSync(join(tmpdir(), "det-model-"));
    try {
        writeFileSync(join(folder, "note.txt"), "a line of the file that was chosen\n");
        await page.getByLabel("Folder with the model's code").setInputFiles(folder);
        await page.getByText("1 file, 35 B").waitFor();
        await page.getByRole("button", { name: "Create" }).click();
        await page.getByRole("heading", { name: "typed in the page" }).waitFor();
    } finally {
        rmSync(folder, { recursive: true });
    }
    const id = /experiments\/(\d+)$/.exec(page.url())[1];
    check((await api("GET", `/experiments/${id}`)).experiment.originalConfig === mended, "not what was typed was sent");
    const trial = (await until(async () => (await api("GET", `/experiments/${id}/trials`)).trials[0], "the trial")).id;
    await page.goto(`${url}/det/trials/${trial}/logs`);
    await page.getByText("a line of the file that was chosen").waitFor();
    await api("POST", `/experiments/${id}/kill`, {});
    await page.goto(`${url}/det/experiments/new`);
    await page.locator(".cm-content").getByText("my-experiment").waitFor();
}
