// A search of more trials than are drawn: the curve of a group is the mean of all of its trials.
import { api, check, pictures, url } from "./harness.mjs";

const TRIALS = 504; // the page draws 500
const CONFIG = "name: many\nsearcher: {name: random, metric: loss, max_length: 100, max_trials: 504}\nhyperparameters: {lr: {type: categorical, vals: [0.1, 0.2]}, seed: {type: int, minval: 0, maxval: 999}}\n";

async function made(experimentId, i) {
    const { trial: { id } } = await api("POST", "/trials", { experimentId, hparams: { lr: i % 2 ? 0.2 : 0.1, seed: i }, unmanaged: true });
    const { trialRunId } = await api("POST", `/trials/${id}/start`, { trialId: id });
    const report = (stepsCompleted) => api("POST", `/trials/${id}/metrics`, { group: "validation", metrics: { trialId: id, trialRunId, stepsCompleted, metrics: { avgMetrics: { loss: i } } } });
    await report(10);
    await report(20);
}

/* From a trial to its neighbours, with what is seen of each. */
async function turns(page, id) {
    const ids = (await api("GET", `/experiments/${id}/trials?limit=1000&sortBy=SORT_BY_ID`)).trials.map((t) => t.id);
    await page.goto(`${url}/det/trials/${ids[300]}?m=validation.loss&x=time`);
    const pager = page.getByRole("navigation", { name: "Trials of the search" });
    await pager.getByText("301 of 504").waitFor();
    await pager.getByRole("link", { name: `trial ${ids[301]}` }).click();
    await page.getByRole("heading", { name: `Trial ${ids[301]}`, exact: true }).waitFor();
    await pager.getByText("302 of 504").waitFor();
    check(page.url().endsWith(`/det/trials/${ids[301]}?m=validation.loss&x=time`), page.url());
    await page.goto(`${url}/det/trials/${ids[0]}`);
    await pager.getByText("1 of 504").waitFor();
    check(await pager.getByRole("link").count() === 1, "there is one before the first");
    await page.getByRole("link", { name: /^many #/ }).waitFor();
    check(await page.getByRole("button", { name: "Kill" }).count() === 0, "what runs elsewhere cannot be killed here");
    await pictures(page, "trial-of-many");
}

export default async function ({ page }) {
    const { experiment: { id } } = await api("POST", "/experiments", { config: CONFIG, unmanaged: true });
    for (let i = 0; i < TRIALS; i += 8) await Promise.all(Array.from({ length: 8 }, (_, k) => made(id, i + k)));
    await page.goto(`${url}/det/experiments/${id}`);
    const summary = page.locator(".curve-summary");
    await summary.getByText(`500 curves, 1,000 points`).waitFor();
    await page.goto(`${url}/det/experiments/${id}?g=lr`);
    await summary.getByText(`2 curves, ${(2 * TRIALS).toLocaleString("en")} points`).waitFor();
    const chart = page.getByRole("group", { name: "The curves" });
    await chart.focus();
    const said = async (key) => { await page.keyboard.press(key); return chart.getByRole("status").innerText(); };
    const all = [await said("ArrowRight"), await said("ArrowDown")].sort();
    check(all[0].startsWith("lr 0.1 (n = 252) · 10 · 251") && all[1].startsWith("lr 0.2 (n = 252) · 10 · 252"), all.join(" | "));
    await pictures(page, "experiment-many-groups");
    await turns(page, id);
}
