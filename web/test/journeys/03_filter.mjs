// A search, a state, a label, a sort and columns: the address holds them, and another browser shows the same.
import { check, create, pictures, until, url } from "./harness.mjs";

const config = (name, labels) => ({ name, labels, entrypoint: ["true"], hyperparameters: {},
    searcher: { name: "single", metric: "x", max_length: { batches: 1 } } });
const rows = (p) => p.locator("tr[data-experiment]").evaluateAll((all) => all.map((r) => Number(r.dataset.experiment)));
const sameRows = (p, ids) => until(async () => (await rows(p)).join() === ids.join(), `the rows ${ids}`);
const heads = (p) => p.locator("table.list thead th").allInnerTexts();

export default async function ({ page, another }) {
    const b = await create(config("Filter b", ["teal", "odd"]), null, false), a = await create(config("filter a", ["teal"]), null, false);
    const c = await create(config("filter c", ["teal"]), null, false), plain = await create({ ...config("filter d", []), hyperparameters: { lr: { type: "log", base: 10, minval: -4, maxval: -1 } } }, null, false);
    await page.goto(`${url}/det/experiments`);
    await page.getByRole("searchbox").fill("FILTER");
    await sameRows(page, [plain, c, a, b]);
    await page.getByText(/^Labels:/).click();
    await page.getByRole("group", { name: "Labels" }).getByLabel("teal").check();
    await sameRows(page, [c, a, b]);
    await page.keyboard.press("Escape");
    await page.getByText(/^State:/).click();
    await page.getByRole("group", { name: "State" }).getByLabel("paused").check();
    await page.getByText(/^Owner:/).click();
    await page.getByRole("group", { name: "Owner" }).getByLabel("admin").check();
    await page.getByText(/^Columns:/).click();
    await page.getByRole("group", { name: "Columns" }).getByLabel("Pool").check();
    await pictures(page, "experiments-columns");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Name" }).click();
    await until(async () => page.url().includes("sort=name"), "the sort in the address");
    const sorted = await until(async () => {
        const got = await rows(page);
        return got.length === 3 && got.join() !== [c, a, b].join() && got;
    }, "the rows sorted");
    await page.getByRole("button", { name: "Name" }).click();
    await sameRows(page, [...sorted].reverse());
    await pictures(page, "experiments-filtered");
    const other = await another();
    await other.goto(page.url());
    await sameRows(other, [...sorted].reverse());
    check((await heads(other)).join() === (await heads(page)).join(), `other columns: ${await heads(other)}`);
    const name = other.getByRole("columnheader", { name: "Name" });
    check(await name.getAttribute("aria-sort") === "descending", "the other's sort is not told");
    await other.context().close();
    await page.goto(`${url}/det/experiments`);
    await until(async () => (await heads(page)).includes("Pool"), "the columns that were chosen");
    await until(async () => page.url().includes("pool"), "the reader's own columns in the address");
    await page.getByText(/^Hyperparameters:/).click();
    await page.getByRole("group", { name: "Hyperparameters" }).getByLabel("lr").check();
    await until(async () => /(^|,)Best,lr,/.test((await heads(page)).join()), "the hyperparameter's column beside those of the search");
    await page.locator(`tr[data-experiment="${plain}"] td`, { hasText: "1e-4 … 0.1" }).waitFor();
    await pictures(page, "experiments-hyperparameters");
    await page.keyboard.press("Escape");
    await page.getByRole("searchbox").fill("no such experiment");
    await page.getByText("No experiment matches.").waitFor();
    await page.getByRole("button", { name: "Show all" }).click();
    await until(async () => (await rows(page)).includes(plain), "all of them");
}
