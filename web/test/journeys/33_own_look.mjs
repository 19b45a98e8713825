// How a reader wants the list to look goes with them into another browser: columns, the height of rows, what stays at the left, numbers in colours. Two tabs
// that change different things keep both; what Determined's page kept of the height is taken over, and a link changes nothing of its reader's own.
import { api, check, create, pictures, until, url } from "./harness.mjs";

const METRIC = "validation.score.max";
const config = { name: "look", entrypoint: ["true"], hyperparameters: { lr: 0.1 }, searcher: { name: "single", metric: "score", max_length: { batches: 1 } } };
const heads = (p) => p.locator("table.list thead th").allInnerTexts();
const highOf = (p) => p.locator("tr[data-experiment] td").first().evaluate((e) => Math.round(e.getBoundingClientRect().height));
const kept = async (key) => JSON.parse((await api("GET", "/users/setting")).settings.find((s) => s.key === key)?.value ?? "null");

async function reported(values) {
    const ids = [];
    for (const value of values) {
        const { experiment } = await api("POST", "/experiments", { config: JSON.stringify(config), unmanaged: true });
        const { trial } = await api("POST", "/trials", { experimentId: experiment.id, unmanaged: true, hparams: { lr: 0.1 } });
        const { trialRunId } = await api("POST", `/trials/${trial.id}/start`, { trialId: trial.id, resume: false });
        await api("POST", `/trials/${trial.id}/metrics`, { metrics: { trialId: trial.id, trialRunId, stepsCompleted: 1, metrics: { avgMetrics: { score: value } } }, group: "validation" });
        ids.push(experiment.id);
    }
    return ids;
}

async function looks(page) {
    const open = () => page.getByText("Look", { exact: true }).click(), look = page.getByRole("group", { name: "Look" });
    await open();
    const right = await look.evaluate((e) => e.getBoundingClientRect().right - document.documentElement.clientWidth);
    check(right <= 0, `the menu is ${right} pixels beyond the window`);
    await look.getByLabel("Rows").selectOption({ label: "Extra tall" });
    await until(async () => await highOf(page) === 44, "rows of another height");
    await look.getByLabel("Columns that stay at the left").selectOption("2");
    await look.getByLabel("Numbers in colours").check();
    await look.getByLabel(METRIC).waitFor();
    await until(async () => (await page.locator("tr[data-experiment] td[style*=background]").count()) >= 3, "numbers in colours");
    await pictures(page, "experiments-look");
    await page.keyboard.press("Escape");
    await until(async () => await kept("rowHeight") === "EXTRA_TALL" && await kept("pinnedColumnsCount") === 2 && await kept("heatmapOn") === true, "the look kept");
}

/* What stays is seen where the rest has scrolled away. */
async function staysAtTheLeft(page) {
    await page.setViewportSize({ width: 700, height: 800 });
    const [before, after] = await page.locator("div.list-box").evaluate(async (box) => {
        const left = () => document.querySelector("tr[data-experiment] th").getBoundingClientRect().left, at = left();
        box.scrollLeft = 300;
        await new Promise((done) => requestAnimationFrame(done));
        return [at, left()];
    });
    check(before === after, `the name moved from ${before} to ${after}`);
    await pictures(page, "experiments-look-scrolled");
    await page.setViewportSize({ width: 1400, height: 1000 });
}

export default async function ({ page, another }) {
    const ids = await reported([1, 5, 9]), plain = await create(config, null, false);
    await api("POST", "/users/setting", { settings: [{ key: "rowHeight", storagePath: "globalTableSettings", value: "\"SHORT\"" }] });
    await page.goto(`${url}/det/experiments?c=id,name,state,best,pool&mc=${METRIC}&e=${[...ids, plain].join()}`);
    await until(async () => await highOf(page) === 32, "the height that Determined's page kept");
    check(await kept("columns") === null, "a link's columns were kept as the reader's own");
    const tab = await page.context().newPage(); // a second tab, open meanwhile
    await tab.goto(`${url}/det/experiments`);
    await tab.getByText(/^Columns:/).click();
    await looks(page);
    await tab.getByRole("group", { name: "Columns" }).getByLabel("Pool").check();
    await until(async () => (await kept("columns"))?.includes("pool"), "the columns kept");
    check(await kept("pinnedColumnsCount") === 2 && await kept("heatmapOn") === true, "one tab undid what the other kept");
    await tab.close();
    await staysAtTheLeft(page);
    const other = await another();
    await other.goto(`${url}/det/experiments`);
    await until(async () => (await heads(other)).includes("Pool") && await highOf(other) === 44, "the look in another browser");
    await until(() => /pin=2/.test(other.url()) && /heat=1/.test(other.url()), "the look in the other's address");
    check(!other.said.length, other.said.join("\n"));
    await other.context().close();
    await api("POST", `/experiments/${plain}/kill`, {});
}
