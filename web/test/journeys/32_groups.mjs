// Trials of several experiments in groups: their spread, their members, the address for a colleague, a file; what does not match is in none.
import { readFileSync } from "node:fs";
import { api, check, create, exampleConfig, pictures, until, url } from "./harness.mjs";

const grid = (label) => `${exampleConfig("digits/const.yaml").replace("epochs: 12", "epochs: 2").replace("digits_const", `seeds ${label}`)}\nlabels: [${label}]\n`;

export default async function ({ page, another }) {
    const ids = [await create(grid("few"), "digits"), await create(grid("few"), "digits"), await create(grid("other"), "digits")];
    await until(async () => (await Promise.all(ids.map((id) => api("GET", `/experiments/${id}`)))).every((r) => r.experiment.state === "STATE_COMPLETED"), "the three to end");
    await page.goto(`${url}/det/experiments?search=seeds&mc=validation.accuracy.max`);
    await page.getByText(/^Groups:/).click();
    await page.getByRole("group", { name: "Groups" }).getByLabel("label").check();
    await page.keyboard.press("Escape");
    const table = page.getByRole("table", { name: "Groups of trials" }), row = (name) => table.getByRole("row", { name: new RegExp(`^${name}`) });
    await row("few").getByText(/^0\.\d+ ± \S+$/).waitFor();
    await row("other").getByText(/^0\.\d+$/).waitFor(); // of one alone nothing deviates
    await page.getByText("2 groups of 3 trials", { exact: false }).waitFor();
    await row("few").getByRole("button").click();
    const trials = (await Promise.all(ids.slice(0, 2).map((id) => api("GET", `/experiments/${id}/trials`)))).map((r) => r.trials[0].id);
    for (const t of trials) await table.getByRole("link", { name: `trial ${t}` }).waitFor();
    await pictures(page, "experiment-groups");
    await page.setViewportSize({ width: 320, height: 800 });
    await pictures(page, "experiment-groups-small");
    await page.setViewportSize({ width: 1400, height: 1000 });
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV of the groups" }).click()]);
    const lines = readFileSync(await file.path(), "utf8").split("\r\n");
    check(lines.length === 4 && lines[0].startsWith("label,trials,experiments,validation.accuracy.max n,") && lines[1].startsWith("few,2,2,2,0."), lines.join("|"));
    const other = await another();
    await other.goto(page.url());
    await other.getByRole("table", { name: "Groups of trials" }).getByRole("row", { name: /^few/ }).waitFor();
    await other.context().close();
    await table.getByRole("link", { name: "Compare these" }).click();
    await page.getByRole("heading", { level: 1 }).first().waitFor();
    check(page.url().includes(`/det/compare?t=${trials.join(",")}`), page.url());
}
