// Any two against any metric: cells with means as the trials have them, chosen there and in the table; dots by another metric; files; the address.
import { readFileSync } from "node:fs";
import { api, check, create, exampleConfig, fitsIn, pictures, until, url } from "./harness.mjs";

const NAME = "digits_random";

/* One that an earlier journey has run does as well. */
async function aSearch() {
    const { experiments } = await api("GET", `/experiments?name=${NAME}&sortBy=SORT_BY_ID&limit=50`);
    const id = experiments.find((e) => e.name === NAME && e.state === "STATE_COMPLETED")?.id ?? await create(exampleConfig("digits/random.yaml"), "digits");
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_COMPLETED", "the search to end");
    return [id, (await api("GET", `/experiments/${id}/trials`)).trials];
}

async function lines(page, part) {
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("region", { name: part }).getByRole("button", { name: "CSV" }).click()]);
    return readFileSync(await file.path(), "utf8").trim().split(/\r?\n/).map((l) => l.split(","));
}

async function drawing(page, part, words) {
    const region = page.getByRole("region", { name: part });
    const [svg] = await Promise.all([page.waitForEvent("download"), region.getByRole("button", { name: "SVG" }).click()]), text = readFileSync(await svg.path(), "utf8");
    check(words.every((w) => text.includes(w)), `${words} in ${text.slice(0, 2000)}`);
    const [png] = await Promise.all([page.waitForEvent("download"), region.getByRole("button", { name: "PNG" }).click()]);
    check(readFileSync(await png.path()).subarray(1, 4).toString() === "PNG", png.suggestedFilename());
}

async function cells(page, trials) {
    const heat = page.getByRole("region", { name: "Heat map" }), loss = (t) => t.summaryMetrics.validation_metrics.validation_loss.min;
    await heat.getByRole("combobox", { name: "across" }).selectOption("learning_rate");
    await heat.getByRole("combobox", { name: "up" }).selectOption("global_batch_size");
    await heat.getByRole("combobox", { name: "colour" }).selectOption("validation.validation_loss.min");
    await until(() => page.url().includes("sx=learning_rate&sy=global_batch_size&sc=validation.validation_loss.min"), "the three in the address");
    const [head, ...rows] = await lines(page, "Heat map"), of = new Map(trials.map((t) => [String(t.id), t]));
    check(head.join() === "learning_rate,global_batch_size,mean validation.validation_loss.min,deviation,lowest,highest,n,trials", `${head}`);
    check(rows.flatMap((r) => r[7].split(" ")).length === trials.length, `${rows}`);
    for (const r of rows) {
        const all = r[7].split(" ").map((id) => of.get(id)), mean = all.reduce((s, t) => s + loss(t), 0) / all.length;
        check(Math.abs(Number(r[2]) - mean) < 1e-9 && all.every((t) => String(t.hparams.global_batch_size) === r[1]), `${r}`);
    }
    await drawing(page, "Heat map", ["learning_rate", "global_batch_size", "mean of validation.validation_loss.min"]);
    return rows;
}

/* By the pointer and by the keyboard's way; the table of trials has the same ticks. */
async function chooses(page, rows, trials) {
    const heat = page.getByRole("region", { name: "Heat map" }), chosen = () => new URL(page.url()).searchParams.get("t") ?? "";
    await heat.getByText("The cells as a table").click();
    const button = heat.getByRole("table", { name: "Cells" }).getByRole("button", { name: /^Choose/ }).first();
    await button.click();
    await until(() => chosen() === rows[0][7].split(" ").join(), "the cell's trials in the address");
    await until(async () => await button.getAttribute("aria-pressed") === "true", "the button to say so");
    const canvas = heat.getByRole("img"), box = await canvas.boundingBox();
    await until(async () => { // somewhere in each column's lowest row there may be a cell
        for (let x = 80; x < box.width; x += 40) {
            await canvas.hover({ position: { x, y: box.height - 60 } });
            if (await heat.locator(".chart-tip").count()) return true;
        }
        return false;
    }, "a cell under the pointer");
    check(/^learning_rate .*\nglobal_batch_size .*\nmean validation\.validation_loss\.min .*\n\d+ trial/.test(await heat.locator(".chart-tip").innerText()), await heat.locator(".chart-tip").innerText());
    await pictures(page, "experiment-heat");
    await page.getByRole("link", { name: "trials", exact: true }).click();
    await page.getByRole("table", { name: "Trials" }).locator("tbody tr").nth(trials.length - 1).waitFor();
    const ticked = await page.locator("tr[data-trial]:has(input:checked)").evaluateAll((all) => all.map((r) => r.dataset.trial));
    check(ticked.sort().join() === rows[0][7].split(" ").sort().join(), `ticked: ${ticked}`);
}

/* On a small phone: each cell has room for a finger, a tap chooses its trials, and its words lie within the page. */
async function small(page, n) {
    await page.setViewportSize({ width: 320, height: 640 });
    const heat = page.getByRole("region", { name: "Heat map" }), canvas = heat.getByRole("img", { name: `${n} trials in` }), chosen = () => new URL(page.url()).searchParams.get("t");
    await fitsIn(page, "the heat map");
    await heat.scrollIntoViewIfNeeded();
    await pictures(page, "experiment-heat-small");
    const before = chosen(), box = await canvas.boundingBox();
    await until(async () => {
        for (let x = box.width - 20; x > 60; x -= 20) {
            await canvas.click({ position: { x, y: box.height - 60 } });
            if (chosen() !== before) return true;
        }
        return false;
    }, "a cell to be tapped");
    await heat.locator(".chart-tip").waitFor();
    const tip = await heat.locator(".chart-tip").evaluate((e) => { const r = e.getBoundingClientRect(); return [r.left, r.right]; });
    check(tip[0] >= 0 && tip[1] <= 320, `the words lie from ${tip}`);
    await fitsIn(page, "the heat map with words");
    await pictures(page, "experiment-heat-small-tapped");
    await page.setViewportSize({ width: 1400, height: 1000 });
}

export default async function ({ page }) {
    const [id, trials] = await aSearch();
    await page.goto(`${url}/det/experiments/${id}/visualization/hp-heat-map`);
    await until(() => page.url().includes("tab=heat"), "the old address to open the heat map");
    await page.getByRole("region", { name: "Heat map" }).getByRole("img", { name: `${trials.length} trials in` }).waitFor();
    await chooses(page, await cells(page, trials), trials);
    await page.getByRole("link", { name: "heat", exact: true }).click();
    await small(page, trials.length);
    await page.getByRole("link", { name: "scatter", exact: true }).click();
    const scatter = page.getByRole("region", { name: "Scatter" });
    await scatter.getByRole("combobox", { name: "up" }).selectOption("training.loss.last");
    const [head, ...dots] = await lines(page, "Scatter");
    check(head.join() === "trial,learning_rate,training.loss.last,validation.validation_loss.min" && dots.length === trials.length, `${head}`);
    for (const d of dots) {
        const t = trials.find((o) => String(o.id) === d[0]);
        check(Number(d[2]) === t.summaryMetrics.avg_metrics.loss.last && Number(d[1]) === t.hparams.learning_rate, `${d}`);
    }
    await drawing(page, "Scatter", ["coloured by validation.validation_loss.min"]);
    await pictures(page, "experiment-scatter");
}
