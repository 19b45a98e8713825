// Names, descriptions and labels that look like HTML, turn the text around, beep, are formulas or go on for ever: all of them stay text.
import { readFileSync } from "node:fs";
import { api, check, create, fitsIn, pictures, until, url } from "./harness.mjs";

const EVIL = ["<img src=x onerror=alert(1)>", "\"><script>alert(2)</script>", "\u202egnp.exe\u0007\u001b[31m",
    "=cmd|'/c calc'!A1", "javascript:alert(3)", "x".repeat(10_000)];
const config = (text) => ({ name: `hostile ${text}`, description: text, labels: [text], entrypoint: ["true"], hyperparameters: {},
    searcher: { name: "single", metric: text.slice(0, 100), max_length: { batches: 1 } } });

async function whatIsTaken() {
    const ids = [];
    for (const text of EVIL) {
        try {
            ids.push(await create(config(text), null, false));
        } catch {
            continue; // the master may refuse one: then nobody has to show it
        }
    }
    check(ids.length >= 3, `only ${ids.length} of the names were taken`);
    return ids;
}

/* What stands in a master's settings and comes from agents is put in place of what is there: no other journey should see it. */
async function settings(page) {
    const answers = async (pattern, change) => page.route(pattern, async (route) => {
        const response = await route.fetch(), json = await response.json();
        change(json);
        await route.fulfill({ response, json });
    });
    await answers(/\/api\/v1\/resource-pools/, ({ resourcePools }) => {
        const [of] = resourcePools;
        resourcePools.push(...EVIL.map((name) => ({ ...of, name, description: name, numAgents: 1, stats: { queuedCount: 0, scheduledCount: 0 } }))); // of a pool that is not there no queue can be asked for
    });
    await answers(/\/api\/v1\/job-queues-v2/, ({ jobs }) => jobs.forEach(({ full }, i) => Object.assign(full, { name: EVIL[i % EVIL.length], username: EVIL[i % EVIL.length], resourcePool: EVIL[i % EVIL.length] })));
    await answers(/\/api\/v1\/agents/, ({ agents }) => {
        const [of] = agents;
        agents.push(...EVIL.map((id) => ({ ...of, id, resourcePools: EVIL, slots: { 0: { ...Object.values(of.slots)[0], device: { ...Object.values(of.slots)[0].device, brand: id }, state: "AILING", stateText: id } } })));
    });
    await answers(/\/api\/v1\/master\/config/, ({ config }) => { config.quotas = EVIL.flatMap((name) => [{ user: name, pool: name, slots: 1 }, { user: "*", pool: name, slots: 2 }]); });
}

/* All of it stays text, in its place: on a large screen and on a small one. */
async function staysText(page, name) {
    check(await page.locator("main :is(img, script, iframe):not([role])").count() === 0, `${name}: a name became an element`);
    const shown = await page.locator("main").innerText();
    check(shown.includes(EVIL[0]) && shown.includes("javascript:alert(3)"), `${name}: ${shown.slice(0, 400)}`);
    const hidden = /.{0,40}[\u202e\u0007\u001b].{0,40}/.exec(shown);
    check(!hidden, `${name} hides something: ${JSON.stringify(hidden?.[0])}`);
    check(shown.length < 100_000, `${name}: ${shown.length} letters`);
    check(await page.locator("main a[href^='javascript:']").count() === 0, `${name}: a link that acts`);
    await pictures(page, `hostile-${name}`);
    await page.setViewportSize({ width: 320, height: 640 });
    await fitsIn(page, `${name} of hostile names`);
    await pictures(page, `hostile-${name}-small`);
    await page.setViewportSize({ width: 1400, height: 1000 });
}

async function cluster(page) {
    await settings(page);
    await page.goto(`${url}/det/clusters`);
    await page.getByRole("region", { name: "Pool javascript:alert(3)" }).waitFor();
    const row = page.getByRole("table", { name: "Agents" }).getByRole("row", { name: "javascript:alert(3)" });
    await row.first().getByRole("button", { name: "Slots…" }).click();
    await page.getByRole("table", { name: "Slots of" }).waitFor();
    await staysText(page, "cluster");
    const long = await page.getByRole("table", { name: "Queue" }).locator("td bdi").evaluateAll((all) => all.map((b) => b.textContent).filter((t) => t.length > 50));
    check(!long.length, `a row of the queue is as high as its name is long: ${long}`);
    await page.goto(`${url}/det/clusters?pool=${encodeURIComponent(EVIL[0])}`);
    await page.getByText(`only the pool ${EVIL[0]}`).waitFor();
    await page.goto(`${url}/det/master?tab=quotas`);
    await page.getByRole("table", { name: "Quotas" }).getByText(EVIL[0]).first().waitFor();
    await staysText(page, "quotas");
    await page.unrouteAll({ behavior: "ignoreErrors" });
}

export default async function ({ page }) {
    const ids = await whatIsTaken(), first = (await api("GET", `/experiments/${ids[0]}`)).experiment;
    await page.goto(`${url}/det/experiments?search=hostile&c=id,name,state,metric,labels,description`);
    await page.locator("tr[data-experiment]").nth(ids.length - 1).waitFor();
    await page.locator(`tr[data-experiment="${first.id}"]`).getByRole("link", { name: first.name }).waitFor();
    check(await page.locator("main :is(img, script, iframe):not([role])").count() === 0, "a name became an element");
    const rows = page.locator("tr[data-experiment]");
    const heights = await rows.evaluateAll((all) => all.map((r) => Math.round(r.getBoundingClientRect().height)));
    check(new Set(heights).size === 1, `rows of ${heights} pixels`);
    await page.getByText(/^Labels:/).click();
    await page.getByRole("group", { name: "Labels" }).getByLabel(EVIL[0]).check();
    await until(async () => await rows.count() === 1, "the one with the label");
    await pictures(page, "experiments-hostile");
    await page.keyboard.press("Escape");
    await page.getByLabel("Select all that match").check();
    await page.getByRole("button", { name: "Kill" }).click();
    await page.getByRole("dialog").getByText(first.name).waitFor();
    await pictures(page, "experiments-bulk-hostile");
    await page.getByRole("dialog").getByRole("button", { name: "Not now" }).click();
    const download = page.waitForEvent("download");
    await page.getByRole("button", { name: "CSV" }).click();
    const text = readFileSync(await (await download).path(), "utf8");
    check(text.startsWith("id,name,state,metric,labels,description\r\n") && text.split("\r\n").length === 3, text.slice(0, 400));
    check(text.includes(EVIL[0]), text);
    await cluster(page);
}
