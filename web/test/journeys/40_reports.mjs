// What a trial reported as a table: rows of batches, sorted by a metric, as a file; and curves by the epochs that it counts itself. Names of metrics stay text.
import { readFileSync } from "node:fs";
import { api, check, fitsIn, pictures, until, url } from "./harness.mjs";

const EVIL = "<img src=x onerror=alert(1)>\u202egnp", LONG = "x".repeat(300), BATCHES = 260;
const config = { name: "far away", searcher: { name: "single", metric: "loss", max_length: { batches: 1000 } }, entrypoint: "none", hyperparameters: {}, workspace: null, project: null };

/* A trial that runs elsewhere: training with the epoch every batch, validation every 20. */
async function reported() {
    const { experiment } = await api("POST", "/experiments", { config: JSON.stringify(config), unmanaged: true });
    const { trial } = await api("POST", "/trials", { experimentId: experiment.id, hparams: {}, unmanaged: true });
    const { trialRunId } = await api("POST", `/trials/${trial.id}/start`, { trialId: trial.id, resume: false });
    const say = (group, steps, avgMetrics) => api("POST", `/trials/${trial.id}/metrics`, { group, metrics: { trialId: trial.id, trialRunId, stepsCompleted: steps, metrics: { avgMetrics } } });
    for (let steps = 1; steps <= BATCHES; steps++) {
        await say("training", steps, { loss: 1 / steps, epoch: steps / 40, [EVIL]: steps, [LONG]: 1 });
        if (steps % 20 === 0) await say("validation", steps, { loss: 2 / steps, score: "NaN" });
    }
    return trial.id;
}

const cells = (table, i) => table.locator("tbody tr").evaluateAll((all, at) => all.map((r) => r.cells[at].innerText), i);

async function sorts(page, table) {
    await table.getByRole("button", { name: "validation.loss" }).click();
    await page.getByText("Sorted by a metric of validation: only its reports are here.").waitFor();
    await until(async () => (await cells(table, 0))[0] === "260", "the least first");
    check((await cells(table, 0)).join() === Array.from({ length: 13 }, (_, i) => 260 - 20 * i).join(), `${await cells(table, 0)}`);
    await table.getByRole("button", { name: "validation.loss" }).click();
    await until(async () => (await cells(table, 0))[0] === "20", "the greatest first");
    check(new URL(page.url()).searchParams.get("sort") === "-validation.loss", page.url());
    await table.getByRole("button", { name: "batches" }).click();
    await until(async () => (await cells(table, 0))[0] === "1", "the first batch");
}

export default async function ({ page }) {
    const trial = await reported();
    await page.goto(`${url}/det/trials/${trial}`);
    const part = page.getByRole("region", { name: "Metrics" }), table = part.getByRole("table");
    await table.locator("tbody tr").first().waitFor();
    check((await cells(table, 0))[0] === "260", `${await cells(table, 0)}`);
    await until(async () => (await table.locator("thead").innerText()).includes("<img src=x onerror=alert(1)>"), "the names of the metrics, as text");
    check(await page.locator("main :is(img, script)").count() === 0, "a name became an element");
    await part.getByRole("button", { name: "More" }).click();
    await until(async () => (await table.locator("tbody tr").count()) > 100, "more rows");
    await sorts(page, table);
    await part.scrollIntoViewIfNeeded();
    await pictures(page, "trial-metrics");
    const [file] = await Promise.all([page.waitForEvent("download"), part.getByRole("button", { name: "CSV" }).click()]);
    const lines = readFileSync(await file.path(), "utf8").split("\r\n");
    check(lines.length === BATCHES + 2 && lines[0].startsWith("batches,time,") && lines[20].includes("NaN"), lines[20]);
    const curves = page.getByRole("region", { name: "Curves" });
    await curves.getByRole("combobox", { name: "by" }).selectOption("epochs");
    await curves.getByText(/^\d curves?, [1-9]\d* points?/).waitFor();
    const [points] = await Promise.all([page.waitForEvent("download"), curves.getByRole("button", { name: "CSV" }).click()]);
    const rows = readFileSync(await points.path(), "utf8").split("\r\n").filter((l) => l.includes("validation.loss")).map((l) => l.split(","));
    check(rows.length === 13 && rows.every((r) => Math.abs(Number(r[2]) * 40 - 2 / Number(r[3])) < 1e-6), `${rows}`);
    await pictures(page, "trial-epochs");
    await page.setViewportSize({ width: 320, height: 800 });
    await fitsIn(page, "a trial's reports");
    await page.setViewportSize({ width: 1400, height: 1000 });
}
