// An agent is drained and enabled, a job gets another priority; the master tells its health, log, quotas and who did what.
import { api, check, create, isAnswer, pictures, signIn, until, url } from "./harness.mjs";

const config = { name: "stands somewhere", entrypoint: ["true"], max_restarts: 0, hyperparameters: {}, resources: { slots_per_trial: 1, resource_pool: "line" },
    searcher: { name: "single", metric: "x", max_length: { batches: 1 } } };

async function drains(page) {
    const { id } = (await api("GET", "/agents")).agents[0], row = page.getByRole("table", { name: "Agents" }).getByRole("row", { name: id });
    await row.getByRole("button", { name: "Drain" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Drain" }).click();
    await row.getByText("draining", { exact: true }).waitFor();
    await pictures(page, "cluster-draining");
    await row.getByRole("button", { name: "Enable" }).click();
    await row.getByText("on", { exact: true }).waitFor();
    await until(async () => (await api("GET", "/agents")).agents[0].draining === false, "the agent to be enabled");
}

/* One slot alone is switched off and on; what it is stands beside it. */
async function switchesSlot(page) {
    const { id } = (await api("GET", "/agents")).agents[0], row = page.getByRole("table", { name: "Agents" }).getByRole("row", { name: id });
    await row.getByRole("button", { name: "Slots…" }).click();
    const slots = page.getByRole("table", { name: `Slots of ${id}` }), enabled = async () => Object.values((await api("GET", "/agents")).agents[0].slots).find((s) => s.id === "0").enabled;
    await slots.getByRole("button", { name: "Switch off slot 0" }).click();
    await page.getByRole("dialog").getByText("det slot disable", { exact: false }).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Switch off" }).click();
    await slots.getByText("switched off").waitFor();
    check(!await enabled(), "the master has the slot on");
    await pictures(page, "cluster-slots");
    await slots.getByRole("button", { name: "Enable slot 0" }).click();
    await until(enabled, "the slot to be on");
    await slots.getByText("switched off").waitFor({ state: "detached" });
}

/* One pool alone, by an old link; a job of it that waits is cancelled from the queue. One that is not there is said not to be. */
async function onePool(page, id) {
    await page.goto(`${url}/det/resourcepool/line/queued`);
    await page.getByText("only the pool").waitFor();
    check(await page.getByRole("region", { name: /^Pool / }).count() === 1, "other pools are shown");
    await page.getByRole("region", { name: "Pool line" }).getByText("Next is").waitFor();
    await page.getByText("No agent serves this pool.").waitFor();
    await pictures(page, "cluster-pool");
    await page.locator(`tr[data-job="${id}"]`).getByRole("button", { name: "Cancel…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel it" }).click();
    await page.locator(`tr[data-job="${id}"]`).waitFor({ state: "detached" });
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_CANCELED", "it to be canceled");
    await page.goto(`${url}/det/clusters?pool=${encodeURIComponent("<b>no\u202epool</b>")}`);
    await page.getByRole("alert").getByText("There is no pool").waitFor();
    await page.getByRole("link", { name: "All pools" }).click();
    await page.getByRole("region", { name: "Pool default" }).waitFor();
}

async function stands(page, id) {
    const row = page.locator(`tr[data-job="${id}"]`), job = async () => (await api("GET", "/job-queues-v2?resourcePool=line")).jobs.find((j) => j.full.entityId === String(id)).full;
    await row.getByRole("button", { name: "Change…" }).click();
    await page.getByRole("dialog").getByLabel("Priority").fill("7");
    await pictures(page, "queue-standing");
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await row.locator("[data-label='priority']").getByText("7", { exact: true }).waitFor();
    check((await job()).priority === 7, "the master has another priority");
}

/* An old link opens the log; all of it is there for an administrator. */
async function master(page) {
    await page.goto(`${url}/det/logs`);
    await page.getByRole("log").locator(".log-line").first().waitFor();
    await page.getByLabel("Search").fill("no line has this in it");
    await page.getByText("0 lines").waitFor();
    await page.getByLabel("Search").fill("");
    await pictures(page, "master-log");
    const tabs = page.getByRole("navigation", { name: "Master" });
    await tabs.getByRole("link", { name: "Health" }).click();
    await page.getByText("It is ready.").waitFor();
    await page.getByRole("table", { name: "Lives" }).waitFor();
    await pictures(page, "master-health");
    await tabs.getByRole("link", { name: "Quotas" }).click();
    await page.getByRole("row", { name: "admin" }).getByText("line").waitFor();
    await pictures(page, "master-quotas");
    await tabs.getByRole("link", { name: "Settings" }).click();
    await page.getByText("\"resource_pools\"").waitFor();
    await tabs.getByRole("link", { name: "Who did what" }).click();
    await page.getByRole("table", { name: "Who did what" }).getByText("admin").first().waitFor();
    await pictures(page, "master-audit");
}

/* Determined's address of it; what ran is there, by what the reader asks for, and goes out as a file. */
async function use(page) {
    await create({ ...config, resources: { slots_per_trial: 1 } }, null);
    await until(async () => (await api("GET", `/resources/allocation/raw?timestampAfter=2020-01-01T00:00:00Z&timestampBefore=2100-01-01T00:00:00Z`)).resourceEntries.length > 0, "a run to have a slot");
    await page.goto(`${url}/det/clusters`);
    await page.getByRole("link", { name: "Use over time" }).click();
    const table = page.getByRole("table", { name: "Slot use" }), choices = page.getByRole("region", { name: "Use over time" }).getByRole("combobox");
    await table.getByRole("row", { name: "default" }).waitFor();
    await pictures(page, "use-by-pool");
    await choices.nth(1).selectOption("user");
    await table.getByRole("row", { name: "admin" }).waitFor();
    await choices.nth(0).selectOption("month");
    await table.getByRole("row", { name: "admin" }).waitFor();
    check(page.url().includes("groupBy=month") && page.url().includes("by=user"), `what is seen is in the address: ${page.url()}`);
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "CSV" }).click()]);
    check(file.suggestedFilename().startsWith("slot_use_"), file.suggestedFilename());
}

/* Who may not is told so, in the master's words. */
async function asNobody(stranger) {
    await api("POST", "/users", { user: { username: "bystander", active: true }, password: "a long enough word", isHashed: false });
    const other = await stranger();
    other.mayFail = [isAnswer(403, "GET /api/v1/master/config")];
    await other.goto(`${url}/det/master?tab=settings`);
    await signIn(other, "bystander", "a long enough word");
    await other.getByText("The settings could not be read").waitFor();
    await pictures(other, "master-refused");
    await other.context().close();
}

export default async function ({ page, stranger }) {
    const id = await create(config, null);
    for (const key of ["g", "c"]) await page.keyboard.press(key);
    await page.getByRole("table", { name: "Agents" }).waitFor();
    await drains(page);
    await switchesSlot(page);
    await stands(page, id);
    await master(page);
    await use(page);
    await asNobody(stranger);
    await onePool(page, id);
}
