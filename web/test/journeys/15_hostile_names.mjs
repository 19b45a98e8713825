// Names, descriptions and labels that look like HTML, turn the text around, beep, are formulas or go on for ever: all of them stay text.
import { readFileSync } from "node:fs";
import { api, check, create, pictures, until, url } from "./harness.mjs";

const EVIL = ["<img src=x onerror=alert(1)>", "\"><script>alert(2)</script>", "\u202egnp.exe\u0007\u001b[31m",
    "=cmd|'/c calc'!A1", "javascript:alert(3)", "x".repeat(10_000)];
const config = (text) => ({ name: `hostile ${text}`, description: text, labels: [text], entrypoint: ["true"], hyperparameters: {},
    searcher: { name: "single", metric: text.slice(0, 100), max_length: { batches: 1 } } });

async function whatIsTaken() {
    const ids = [];
    for (const text of EVIL) {
        try {
            ids.push(await create(config(text), null, false));
        } catch {
            continue; // the master may refuse one: then nobody has to show it
        }
    }
    check(ids.length >= 3, `only ${ids.length} of the names were taken`);
    return ids;
}

export default async function ({ page }) {
    const ids = await whatIsTaken(), first = (await api("GET", `/experiments/${ids[0]}`)).experiment;
    await page.goto(`${url}/det/experiments?search=hostile&c=id,name,state,metric,labels,description`);
    await page.locator("tr[data-experiment]").nth(ids.length - 1).waitFor();
    await page.locator(`tr[data-experiment="${first.id}"]`).getByRole("link", { name: first.name }).waitFor();
    check(await page.locator("main :is(img, script, iframe):not([role])").count() === 0, "a name became an element");
    const rows = page.locator("tr[data-experiment]");
    const heights = await rows.evaluateAll((all) => all.map((r) => Math.round(r.getBoundingClientRect().height)));
    check(new Set(heights).size === 1, `rows of ${heights} pixels`);
    await page.getByText(/^Labels:/).click();
    await page.getByRole("group", { name: "Labels" }).getByLabel(EVIL[0]).check();
    await until(async () => await rows.count() === 1, "the one with the label");
    await pictures(page, "experiments-hostile");
    await page.keyboard.press("Escape");
    await page.getByLabel("Select all that match").check();
    await page.getByRole("button", { name: "Kill" }).click();
    await page.getByRole("dialog").getByText(first.name).waitFor();
    await pictures(page, "experiments-bulk-hostile");
    await page.getByRole("dialog").getByRole("button", { name: "Not now" }).click();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "CSV" }).click();
    const text = readFileSync(await (await download).path(), "utf8");
    check(text.startsWith("id,name,state,metric,labels,description\r\n") && text.split("\r\n").length === 3, text.slice(0, 400));
    check(text.includes(EVIL[0]), text);
}
