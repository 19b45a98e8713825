// A tab that stays open: a newer page is told of and loaded, Escape in a list of choices leaves what is ticked, any press elsewhere closes it, a registry's secrets are not on screen;
// an old link to models keeps its filter.
import { readFileSync } from "node:fs";
import { api, check, create, pictures, until, url } from "./harness.mjs";

const SECRET = "swordfish-of-the-registry";
const config = { name: "pulls an image", labels: ["tab"], entrypoint: ["true"], hyperparameters: {}, searcher: { name: "single", metric: "x", max_length: { batches: 1 } },
    environment: { image: "registry.example/x", registry_auth: { username: "ada", password: SECRET } } };

async function newer(page) {
    await page.route("**/det/", async (route) => route.fulfill({ contentType: "text/html", body: (await (await route.fetch()).text()).replace(/app\.\w+\.js/, "app.NEWER000.js") }));
    await page.goto(`${url}/det/experiments`);
    await page.getByText("The master has a newer version of this page.").waitFor();
    await pictures(page, "newer-page");
    await page.unroute("**/det/");
    await page.getByRole("button", { name: "Load it" }).click();
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
    await until(async () => !await page.getByText("The master has a newer version of this page.").isVisible(), "no word of it");
}

/* What is ticked is one state: it stays on screen and in what acts, whatever Escape closes. */
async function escape(page, id) {
    await page.getByLabel(`Select experiment ${id}`).check();
    await page.getByText(/^Columns:/).click();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Escape");
    await page.getByRole("button", { name: "Kill", exact: true }).click();
    await page.getByRole("dialog").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
    check(await page.getByLabel(`Select experiment ${id}`).isChecked(), "Escape took the tick away");
    await page.getByText("1 selected").waitFor();
    check((await api("GET", `/experiments/${id}`)).experiment.state === "STATE_PAUSED", "Escape acted");
}

/* A press elsewhere closes what is open, with whichever button; one within it does not. */
async function presses(page) {
    const list = page.getByRole("group", { name: "Columns" });
    for (const button of ["right", "middle", "left"]) {
        await page.getByText(/^Columns:/).click();
        await list.getByText("Owner").click({ button: button === "left" ? "right" : button });
        await list.waitFor();
        await page.getByRole("heading", { name: "Experiments" }).click({ button });
        await list.waitFor({ state: "hidden" });
    }
}

async function secrets(page, id) {
    await page.goto(`${url}/det/experiments/${id}?tab=config`);
    const panel = page.getByRole("region", { name: "Configuration" });
    await panel.getByText("••••••").first().waitFor();
    await panel.getByText("With all that it left out").click();
    check(!(await page.content()).includes(SECRET), "the page holds the secret");
    await pictures(page, "config-secrets");
    await panel.getByLabel("show the registry's secrets").check();
    await panel.getByText(SECRET).first().waitFor();
}

async function models(page) {
    for (const [name, labels] of [["tab one", ["kept"]], ["tab two", []]]) await api("POST", "/models", { name, labels });
    await page.goto(`${url}/det/models?tags=kept&name=tab&sortKey=SORT_BY_NAME&sortDesc=true`);
    const rows = page.getByRole("table", { name: "Models" }).locator("tbody tr");
    await rows.first().waitFor();
    check(await rows.count() === 1 && await page.getByLabel("Search").inputValue() === "tab", "the old link's filter was dropped");
    await pictures(page, "models-old-link");
    await page.getByRole("button", { name: "All others, too" }).click();
    await until(async () => (await rows.allInnerTexts()).map((t) => t.slice(0, 7)).join() === "tab two,tab one", "both, by name and downwards");
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]), text = readFileSync(await file.path(), "utf8");
    check(file.suggestedFilename() === "models.csv" && /^model,description,labels,versions,owner,changed\r\ntab two,,,0,admin,/.test(text), text);
    for (const name of ["tab one", "tab two"]) await api("DELETE", `/models/${encodeURIComponent(name)}`);
}

export default async function ({ page }) {
    const id = await create(config, null, false);
    await newer(page);
    await escape(page, id);
    await presses(page);
    await secrets(page, id);
    await models(page);
}
