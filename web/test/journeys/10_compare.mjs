// Two experiments side by side: both curves, what differs and what does not; the view is saved, opened from the side, and forgotten.
import { api, check, create, exampleConfig, pictures, until, url } from "./harness.mjs";

const ended = (id) => until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_COMPLETED", `experiment ${id} to end`);

async function compares(page) {
    const config = exampleConfig("digits/const.yaml").replace("epochs: 12", "epochs: 4");
    const a = await create(config, "digits"), b = await create(config.replace("learning_rate: 0.05", "learning_rate: 0.01").replace("digits_const", "digits_slow"), "digits");
    await Promise.all([ended(a), ended(b)]);
    await page.goto(`${url}/det/experiments`);
    await page.getByLabel(`Select experiment ${a}`).check();
    await page.getByLabel(`Select experiment ${b}`).check();
    await page.getByRole("link", { name: "Compare" }).click();
    await page.locator(".curve-summary", { hasText: /2 curves, [1-9]\d* points/ }).waitFor();
    const table = page.getByRole("table", { name: "Side by side" }), names = () => table.locator("tr.differs th").allInnerTexts();
    check((await names()).join() === "learning_rate", `what differs: ${await names()}`);
    await page.getByText("1 hyperparameter differs").waitFor();
    check((await table.locator("tr.differs td").allInnerTexts()).join() === "0.05,0.01", "other values");
    const said = async (name) => (await table.locator(`tr[data-metric='${name}'] td`).allInnerTexts()).map(Number);
    const [trained, validated] = [await said("training.loss"), await said("validation.accuracy")];
    check(trained.length === 2 && trained.every((v) => v > 0) && validated.length === 2 && validated.join() !== trained.join(), `the newest of both: ${trained}; ${validated}`);
    await page.getByLabel("also what is the same").check();
    await table.getByRole("rowheader", { name: "dropout" }).waitFor();
    await page.getByLabel("Metric").selectOption("training.loss");
    await page.locator(".curve-summary", { hasText: /^training.loss: 2 curves, [1-9]/ }).waitFor();
    await pictures(page, "compare");
    return [a, b];
}

async function saves(page, another) {
    const views = page.getByRole("navigation", { name: "Views" }), dialog = page.getByRole("dialog"), seen = page.url();
    await views.getByRole("button", { name: "Save this view…" }).click();
    await dialog.getByLabel("Name").fill("slow <b>against</b> fast");
    await pictures(page, "view-save");
    await dialog.getByRole("button", { name: "Save", exact: true }).click();
    await views.getByRole("link", { name: "slow <b>against</b> fast" }).waitFor();
    await page.goto(`${url}/det/experiments`);
    await views.getByRole("link", { name: "slow <b>against</b> fast" }).click();
    await until(() => page.url() === seen, "the same address");
    await page.locator(".curve-summary", { hasText: /^training.loss: 2 curves, [1-9]/ }).waitFor();
    const other = await another();
    await other.getByRole("link", { name: "slow <b>against</b> fast" }).waitFor();
    await other.context().close();
    await views.getByRole("button", { name: "Change the view slow" }).click();
    await dialog.getByRole("button", { name: "Delete this view" }).click();
    await dialog.getByRole("button", { name: "Delete", exact: true }).click();
    await views.getByRole("link").waitFor({ state: "detached" });
    check(!(await api("GET", "/views")).views.length, "it is there still");
}

export default async function ({ page, another }) {
    const [a] = await compares(page);
    await saves(page, another);
    await page.getByRole("button", { name: /^Leave trial/ }).first().click();
    await page.locator(".curve-summary", { hasText: /1 curve,/ }).waitFor();
    check(!new RegExp(`[?&]e=(\\d+(,|%2C))*${a}(,|%2C|&|$)`).test(page.url()), page.url());
    await page.goto(`${url}/det/compare`);
    await page.getByText("and press Compare").waitFor();
}
