// Conditions put together, of a hyperparameter and a metric; several keys; a metric as a column; a bulk action on just those; another browser.
import { readFileSync } from "node:fs";
import { api, check, create, exampleConfig, pictures, until, url } from "./harness.mjs";

const config = (name, hyperparameters) => ({ name, labels: ["knob"], entrypoint: ["true"], hyperparameters,
    searcher: { name: "single", metric: "x", max_length: { batches: 1 } } });
const rows = (p) => p.locator("tr[data-experiment]").evaluateAll((all) => all.map((r) => Number(r.dataset.experiment)));
const sameRows = (p, ids) => until(async () => (await rows(p)).join() === ids.join(), `the rows ${ids}`);
const pick = (part, name, n = 0) => part.getByLabel(name).nth(n);

async function conditions(page) {
    await page.getByText(/^Conditions:/).click();
    const tree = page.getByRole("group", { name: "Conditions" });
    await tree.getByRole("button", { name: "Add a condition" }).click();
    await pick(tree, "Column").selectOption("tags");
    await pick(tree, "Value").fill("kno");
    await tree.getByRole("button", { name: "Add a group" }).first().click();
    const group = tree.getByRole("group", { name: "Group of conditions" });
    await pick(group, "Column").selectOption("hp.knob");
    await pick(group, "Operator").selectOption(">=");
    await pick(group, "Value").fill("3");
    await group.getByRole("button", { name: "Add a condition" }).click();
    await pick(group, "Column", 1).selectOption({ label: "ID" });
    await pick(group, "Operator", 1).selectOption("=");
}

/* A column that nothing in sight has is typed; a name that names none is said where it is typed. What waits is told from what runs. */
async function typedAndShown(page, paused) {
    await page.goto(`${url}/det/experiments`);
    await page.getByText(/^Conditions:/).click();
    const tree = page.getByRole("group", { name: "Conditions" });
    await tree.getByRole("button", { name: "Add a condition" }).click();
    await pick(tree, "Column").selectOption({ label: "Another name…" });
    const name = tree.getByLabel("Name of a column");
    await name.fill("knob");
    await name.press("Enter");
    check(!await name.evaluate((e) => e.validity.valid), "a name that is no column was taken");
    await pick(tree, "Operator").focus(); // who goes elsewhere is not held there
    await pick(tree, "Column").selectOption({ label: "Another name…" });
    await name.fill("hp.left");
    await name.press("Escape");
    check(await pick(tree, "Column").inputValue() === "name", "Escape took the name");
    await pick(tree, "Column").selectOption({ label: "Another name…" });
    await name.fill("hp.knob");
    await name.press("Enter");
    await pick(tree, "Operator").selectOption(">=");
    await pick(tree, "Value").fill("2");
    await sameRows(page, paused);
    await pick(tree, "Column").selectOption({ label: "State" });
    await pick(tree, "Value").selectOption("PAUSED");
    await sameRows(page, paused);
    await pick(tree, "Value").selectOption("QUEUED");
    await sameRows(page, []);
    const waits = await create({ ...config("waits for slots", {}), resources: { slots_per_trial: 1, resource_pool: "line" } }, null);
    await sameRows(page, [waits]);
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Clear filters" }).click();
    await page.getByText("Conditions: none").waitFor();
    await page.getByText(/^State:/).click();
    await page.getByRole("group", { name: "State" }).getByLabel("queued").check();
    await sameRows(page, [waits]);
    await pictures(page, "experiments-queued");
    await page.getByRole("group", { name: "State" }).getByLabel("running").check();
    await page.getByRole("group", { name: "State" }).getByLabel("queued").uncheck();
    await until(async () => !(await rows(page)).includes(waits), "what runs alone");
    await page.keyboard.press("Escape");
    await api("POST", `/experiments/${waits}/kill`, {});
}

export default async function ({ page, another }) {
    const search = await create(exampleConfig("digits/random.yaml"), "digits");
    const [a, b, c] = [await create(config("knob a", { knob: 1 }), null, false), await create(config("knob b", { knob: { type: "categorical", vals: [2, 9] } }), null, false),
        await create(config("knob c", { knob: 3 }), null, false)];
    const none = await create(config("knob d", {}), null, false);
    await page.goto(`${url}/det/experiments`);
    await until(async () => (await rows(page)).includes(none), "the experiments");
    await typedAndShown(page, [c, b]);
    await page.goto(`${url}/det/experiments`);
    await conditions(page);
    const group = page.getByRole("group", { name: "Group of conditions" });
    await pick(group, "Value", 1).fill(String(a));
    await sameRows(page, [c, b, a]); // by a list of values, by the one value, by its id; who lacks the hyperparameter is not there
    await page.getByText("3 conditions: tags contains kno and (hp.knob ≥ 3 or id = ", { exact: false }).waitFor();
    await pictures(page, "experiments-conditions");
    await page.keyboard.press("Escape");
    const head = (name) => page.getByRole("table", { name: "Experiments" }).getByRole("columnheader").getByRole("button", { name });
    await page.getByText(/^Hyperparameters:/).click();
    await page.getByRole("group", { name: "Hyperparameters" }).getByLabel("knob").check();
    await page.keyboard.press("Escape");
    await head(/^State/).click();
    await head(/^knob/).click({ modifiers: ["Shift"] });
    await sameRows(page, [a, b, c]);
    await head(/^knob/).click({ modifiers: ["Shift"] });
    await sameRows(page, [c, b, a]);
    check(decodeURIComponent(page.url()).includes("sort=state&sort=-hp.knob"), page.url());
    const other = await another();
    await other.goto(page.url());
    await sameRows(other, [c, b, a]);
    await other.context().close();
    await page.getByLabel("Select all that match").click();
    await page.getByRole("button", { name: "Kill", exact: true }).click();
    await page.getByRole("dialog").getByText("tags contains kno and (hp.knob ≥ 3", { exact: false }).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Kill 3 experiments" }).click();
    await until(async () => (await Promise.all([a, b, c].map((id) => api("GET", `/experiments/${id}`)))).every((r) => r.experiment.state === "STATE_CANCELED"), "the three to end");
    check((await api("GET", `/experiments/${none}`)).experiment.state === "STATE_PAUSED", "what did not match was killed");
    await tooMany(page, [c, b]);
    await metrics(page, search);
}

/* Twenty conditions are asked for; of too many for a request that is said, and nothing is asked or taken for all. */
async function tooMany(page, ids) {
    const to = (n) => `${url}/det/experiments?${new URLSearchParams({ sort: "-id", f: JSON.stringify({ and: Array.from({ length: n }, () => ["hp.knob", ">", 1]) }) })}`;
    await page.goto(to(20));
    await sameRows(page, ids);
    await page.goto(to(45));
    await page.getByText(/takes [\d,]+ bytes, and a request has room for 4,000: fewer or shorter conditions/).waitFor();
    check(!(await rows(page)).length, "rows of another question");
}

/* A metric of the best trial is a column, a key and a condition; the file has it. */
async function metrics(page, id) {
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_COMPLETED", "the search to end");
    await page.goto(`${url}/det/experiments?${new URLSearchParams({ f: JSON.stringify({ and: [["id", "=", id], ["validation.accuracy.max", ">", 0]] }) })}`);
    await sameRows(page, [id]);
    await page.getByText(/^Metrics:/).click();
    await page.getByRole("group", { name: "Metrics" }).getByLabel("validation.accuracy.max").check();
    await page.keyboard.press("Escape");
    const { experiment } = await api("GET", `/experiments/${id}`), { trial } = await api("GET", `/trials/${experiment.bestTrialId}`);
    const most = trial.summaryMetrics.validation_metrics.accuracy.max;
    await page.locator(`tr[data-experiment="${id}"]`).getByTitle(`${most} in trial ${trial.id}, the best`).waitFor();
    await page.getByRole("columnheader").getByRole("button", { name: "validation.accuracy.max" }).click();
    await until(() => page.url().includes("sort=validation.accuracy.max"), "the metric as the key");
    await sameRows(page, [id]);
    await pictures(page, "experiments-metrics");
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
    const [heads, line, ...rest] = readFileSync(await file.path(), "utf8").trim().split(/\r?\n/);
    check(heads.includes("validation.accuracy.max") && line.includes(String(most)) && !rest.length, `${heads}\n${line}`);
}
