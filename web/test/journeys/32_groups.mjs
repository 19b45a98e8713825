// Trials of several experiments in groups: their spread, their members, the address for a colleague, a file; what does not match is in none.
import { readFileSync } from "node:fs";
import { api, check, create, exampleConfig, pictures, until, url } from "./harness.mjs";

const grid = (label) => `${exampleConfig("digits/const.yaml").replace("epochs: 12", "epochs: 2").replace("digits_const", `seeds ${label}`)}\nlabels: [${label}]\n`;

/* By the mean of a metric, up and down; ticks are trials in the address. */
async function sortsAndTicks(page, table, trials) {
    const rows = () => table.locator("tr[data-group]").evaluateAll((all) => all.map((r) => [JSON.parse(r.dataset.group)[0], Number(r.querySelector("td:last-child").title.match(/mean ([^,]+)/)[1])]));
    const means = async () => (await rows()).map((r) => r[1]), inOrder = (all, down) => all.every((v, i) => i === 0 || (down ? v <= all[i - 1] : v >= all[i - 1]));
    for (const down of [false, true]) {
        await table.getByRole("button", { name: /^validation\.accuracy\.max/ }).click();
        await until(() => page.url().includes(`gs=${down ? "-" : ""}validation.accuracy.max`), "the key in the address");
        await until(async () => inOrder(await means(), down), "the groups in order of their means");
    }
    await table.getByRole("button", { name: /^trials/ }).click();
    await until(async () => (await rows()).map((r) => r[0]).join() === "other,few", "the smallest first");
    await page.getByLabel("Choose 2 trials of label few").check();
    await until(() => new URL(page.url()).searchParams.get("t") === trials.join(), "the trials in the address");
    await page.getByLabel(`Choose trial ${trials[0]}`).uncheck();
    await until(() => new URL(page.url()).searchParams.get("t") === String(trials[1]), "one of them in the address");
    check(await page.getByLabel("Choose 2 trials of label few").evaluate((box) => box.indeterminate && !box.checked), "a part of a group looks like all or none of it");
}

/* Two of the three are ticked in the list: the groups are of these. */
async function onlyTicked(page, ids) {
    await page.goto(`${url}/det/experiments?search=seeds`);
    for (const id of ids) await page.getByLabel(`Select experiment ${id}`).check();
    await page.getByRole("button", { name: "Only these" }).click();
    await page.getByText("only 2 chosen experiments").waitFor();
    check(new URL(page.url()).searchParams.get("e") === ids.join(), page.url());
    await page.locator("tr[data-experiment]").nth(1).waitFor();
    await until(async () => (await page.locator("tr[data-experiment]").evaluateAll((all) => all.map((r) => r.dataset.experiment))).sort().join() === ids.map(String).sort().join(), "just these in the list");
    await pictures(page, "experiments-only");
    await page.goto(`${page.url()}&g=name`);
    await page.getByText("2 groups of 2 trials").waitFor();
    await page.getByLabel("Show those that were not chosen, too").click();
    await page.getByText("2 groups of 3 trials").waitFor();
}

export default async function ({ page, another }) {
    const ids = [await create(grid("few"), "digits"), await create(grid("few"), "digits"), await create(grid("other"), "digits")];
    await until(async () => (await Promise.all(ids.map((id) => api("GET", `/experiments/${id}`)))).every((r) => r.experiment.state === "STATE_COMPLETED"), "the three to end");
    await page.goto(`${url}/det/experiments?search=seeds&mc=validation.accuracy.max`);
    await page.getByText(/^Groups:/).click();
    const choice = page.getByRole("group", { name: "Groups" });
    for (const name of ["project", "label"]) await choice.getByLabel(name).check();
    await page.getByText("2 groups of 3 trials", { exact: false }).waitFor();
    await choice.getByLabel("project").uncheck(); // rows of two values may not be drawn below one head
    await page.keyboard.press("Escape");
    const table = page.getByRole("table", { name: "Groups of trials" }), row = (name) => table.locator(`tr[data-group='["${name}"]']`);
    await row("few").getByText(/^0\.\d+ ± \S+$/).waitFor();
    await row("other").getByText(/^0\.\d+$/).waitFor(); // of one alone nothing deviates
    await page.getByText("2 groups of 3 trials", { exact: false }).waitFor();
    await row("few").getByRole("button").click();
    const trials = (await Promise.all(ids.slice(0, 2).map((id) => api("GET", `/experiments/${id}/trials`)))).map((r) => r.trials[0].id);
    for (const t of trials) await table.getByRole("link", { name: `trial ${t}` }).waitFor();
    await sortsAndTicks(page, table, trials);
    await pictures(page, "experiment-groups");
    await page.setViewportSize({ width: 320, height: 800 });
    await pictures(page, "experiment-groups-small");
    await page.setViewportSize({ width: 1400, height: 1000 });
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV of the groups" }).click()]);
    const lines = readFileSync(await file.path(), "utf8").split("\r\n");
    check(lines.length === 4 && lines[0].startsWith("label,trials,experiments,validation.accuracy.max n,") && lines[2].startsWith("few,2,2,2,0."), lines.join("|"));
    const other = await another();
    await other.goto(page.url());
    const theirs = other.getByRole("table", { name: "Groups of trials" });
    await theirs.getByRole("link", { name: `trial ${trials[1]}` }).waitFor(); // what is open here is open there
    check(await other.getByLabel(`Choose trial ${trials[1]}`).isChecked() && !await other.getByLabel(`Choose trial ${trials[0]}`).isChecked(), "other ticks there");
    check(await theirs.locator("tr[data-group]").first().getAttribute("data-group") === '["other"]', "another order there");
    await other.context().close();
    await table.getByRole("link", { name: "Compare these" }).click();
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    check(page.url().includes(`/det/compare?t=${trials.join(",")}`), page.url());
    await onlyTicked(page, [ids[0], ids[2]]);
}
