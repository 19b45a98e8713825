// By keys alone: the list of them, search, rows, ticks, an experiment opened and paused, the palette, other pages.
import { api, check, create, isValidation, pictures, until, url } from "./harness.mjs";

const config = (name) => ({ name, entrypoint: ["sleep", "600"], max_restarts: 0, hyperparameters: {}, resources: { slots_per_trial: 0 },
    searcher: { name: "single", metric: "x", max_length: { batches: 1 } } });

/* j and k go through rows that have neither a link nor a button, and past them. */
async function rowsWithoutLinks(page, key) {
    await page.goto(`${url}/det/users?tab=roles`);
    const rows = page.locator("main tr[data-row]"), at = () => rows.evaluateAll((all) => all.findIndex((r) => r.contains(document.activeElement)));
    await rows.nth(2).waitFor();
    await page.evaluate(() => document.querySelectorAll("main tr[data-row] :is(a, button, input, select)").forEach((e) => e.remove()));
    for (const [k, n] of [["j", 0], ["j", 1], ["j", 2], ["k", 1]]) {
        await key(k);
        check(await at() === n, `after ${k} at ${await at()}, not ${n}`);
    }
}

export default async function ({ page }) {
    page.mayFail = [isValidation];
    const key = (k) => page.keyboard.press(k), rows = page.locator("tr[data-experiment]");
    const a = await create(config("keys one"), null, false), b = await create(config("keys two"), null, false);
    await page.goto(`${url}/det/clusters`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    await key("?");
    await page.getByRole("dialog", { name: "Keys" }).getByText("tick the row").waitFor();
    await pictures(page, "keys");
    await key("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    for (const k of ["g", "e"]) await key(k);
    await page.getByRole("heading", { name: "Experiments" }).waitFor();
    await rows.first().waitFor();
    await key("/");
    await page.keyboard.type("keys ?jx");
    await page.getByText("No experiment matches.").waitFor();
    for (let i = 0; i < 3; i++) await key("Backspace");
    await until(async () => await rows.count() === 2, "the two that match");
    await key("Escape"); // of a search field: empties it, or nothing
    await page.evaluate(() => document.activeElement.blur());
    await key("j");
    await until(() => page.evaluate(() => document.activeElement.closest("tr")?.dataset.experiment !== undefined), "a row to have the focus");
    check(await page.evaluate(() => document.activeElement.matches("a[href^='/det/experiments/']")), "enter would not open the row");
    await key("x");
    await page.getByText("1 selected").waitFor();
    await key("x");
    await page.getByText("1 selected").waitFor({ state: "detached" });
    await key("Control+k");
    const palette = page.getByRole("dialog", { name: "Commands" });
    await palette.getByRole("combobox").waitFor();
    await page.keyboard.type("keys one");
    await palette.getByRole("option", { name: `keys one #${a}` }).waitFor();
    await pictures(page, "palette");
    await until(async () => {
        const chosen = await palette.locator("[aria-selected='true']").innerText();
        if (chosen.includes(`#${a}`)) return true;
        await key("ArrowDown");
        return false;
    }, "the one to be chosen");
    await key("Enter");
    await page.getByRole("heading", { name: `keys one #${a}` }).waitFor();
    await page.getByRole("button", { name: "Activate" }).waitFor();
    await page.mouse.move(700, 400); // where it rests below the list, it chooses nothing
    await key("Control+k");
    await palette.getByRole("combobox").waitFor();
    await page.keyboard.type("activ");
    await palette.getByRole("option", { name: "Activate", selected: true }).waitFor();
    await key("Enter");
    await until(async () => (await api("GET", `/experiments/${a}`)).experiment.state !== "STATE_PAUSED", "it to be active");
    await key(".");
    await until(() => page.evaluate(() => document.activeElement.closest(".head") !== null), "the actions to have the focus");
    await rowsWithoutLinks(page, key);
    for (const k of ["g", "n"]) await key(k);
    await page.locator(".cm-content").click();
    await page.keyboard.type("?gek");
    check(await page.getByRole("dialog").count() === 0 && page.url().endsWith("/new"), "a key of the page took a letter of the editor");
    for (const id of [a, b]) await api("POST", `/experiments/${id}/kill`, {});
}
