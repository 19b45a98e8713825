// All that match a filter are archived and nothing else; what cannot be is told before, what fails of each; 100,000 rows scroll.
import { api, check, create, pictures, until, url } from "./harness.mjs";

const config = (name) => ({ name, entrypoint: ["true"], hyperparameters: {},
    searcher: { name: "single", metric: "x", max_length: { batches: 1 } } });
const made = (name) => create(config(name), null, false);
const ended = async (name) => {
    const id = await made(name);
    await api("POST", `/experiments/${id}/kill`, {});
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_CANCELED", `experiment ${id} to end`);
    return id;
};
const archived = async () => (await api("GET", "/experiments?archived=true&limit=1000")).experiments.map((e) => e.id).sort((a, b) => a - b);

async function archivesWhatMatches(page) {
    const before = await archived(), sweep = [], keep = [];
    for (let i = 0; i < 5; i++) sweep.push(await ended(`bulk sweep ${i}`));
    for (let i = 0; i < 2; i++) keep.push(await ended(`bulk keep ${i}`));
    await made("bulk sweep paused");
    await page.goto(`${url}/det/experiments?search=bulk+sweep`);
    await page.locator("tr[data-experiment]").nth(5).waitFor();
    await page.getByLabel("Select all that match").check();
    await page.getByText("6 selected: all that match").waitFor();
    await page.getByLabel(`Select experiment ${sweep[0]}`).uncheck();
    await page.getByRole("button", { name: "Archive", exact: true }).click();
    const dialog = page.getByRole("dialog"), left = sweep.slice(1);
    await dialog.getByRole("heading", { name: "Archive 4 experiments?" }).waitFor();
    await dialog.getByText("All that match, but for 1 unticked: a name with “bulk sweep”; not archived.").waitFor();
    await dialog.getByText("Of those selected, 1 cannot be archived now: left alone.").waitFor();
    await dialog.getByText(`det experiment archive ${left.join(" ")}`).waitFor();
    await pictures(page, "experiments-bulk");
    await dialog.getByRole("button", { name: "Not now" }).click();
    check((await archived()).join() === before.join(), "archived without a yes");
    await page.getByRole("button", { name: "Archive", exact: true }).click();
    await dialog.getByRole("button", { name: "Archive 4 experiments" }).click();
    await page.getByText("4 experiments archived.").waitFor();
    check((await archived()).join() === [...before, ...left].sort((a, b) => a - b).join(), `archived are ${await archived()}`);
    await page.goto(`${url}/det/experiments?search=bulk+keep`);
    await page.getByLabel(`Select experiment ${keep[0]}`).check();
    await page.getByRole("button", { name: "Delete" }).click();
    await dialog.getByText("cannot be had back").waitFor();
    await dialog.getByRole("button", { name: "Delete 1 experiment" }).click();
    await page.locator(`tr[data-experiment="${keep[0]}"]`).waitFor({ state: "detached" });
    await page.getByLabel(`Select experiment ${keep[1]}`).waitFor();
}

/* Those that are ticked go to another project; others stay where they are. */
async function moves(page) {
    const { workspace } = await api("POST", "/workspaces", { name: "bulk lab" }), { project } = await api("POST", `/workspaces/${workspace.id}/projects`, { name: "bulk place", workspaceId: workspace.id });
    const [a, b, c] = [await made("bulk moves a"), await made("bulk moves b"), await made("bulk stays")], at = async (id) => (await api("GET", `/experiments/${id}`)).experiment.projectId;
    await page.goto(`${url}/det/experiments?search=bulk+moves`);
    for (const id of [a, b]) await page.getByLabel(`Select experiment ${id}`).check();
    await page.getByRole("button", { name: "Move", exact: true }).click();
    const dialog = page.getByRole("dialog"), go = dialog.getByRole("button", { name: "Move 2 experiments" });
    await dialog.getByRole("heading", { name: "Move 2 experiments?" }).waitFor();
    check(await go.isDisabled(), "moved to nowhere");
    await dialog.getByRole("combobox", { name: "To" }).selectOption({ label: "bulk lab / bulk place" });
    await pictures(page, "experiments-bulk-move");
    await go.click();
    await page.getByText("2 experiments moved.").waitFor();
    check(await at(a) === project.id && await at(b) === project.id && await at(c) === 1, `they are in ${await at(a)}, ${await at(b)}, ${await at(c)}`);
    for (const id of [a, b, c]) await api("POST", `/experiments/${id}/kill`, {});
}

/* What runs is paused, and canceled. */
async function pauses(page) {
    const ids = [], running = { entrypoint: ["sleep", "600"], resources: { slots_per_trial: 1 } }, state = async (id) => (await api("GET", `/experiments/${id}`)).experiment.state;
    for (const name of ["bulk runs a", "bulk runs b"]) ids.push(await create({ ...config(name), ...running }));
    await page.goto(`${url}/det/experiments?search=bulk+runs`);
    await page.getByLabel("Select all that match").check();
    for (const [verb, done, is] of [["Pause", "paused", "STATE_PAUSED"], ["Cancel", "canceled", "STATE_CANCELED"]]) {
        await page.getByRole("button", { name: verb, exact: true }).click();
        await page.getByRole("dialog").getByRole("button", { name: `${verb} 2 experiments` }).click();
        await page.getByText(`2 experiments ${done}.`).waitFor();
        for (const id of ids) await until(async () => await state(id) === is, `experiment ${id} to be ${done}`);
        if (verb === "Pause") for (const id of ids) await page.getByLabel(`Select experiment ${id}`).check();
    }
}

async function tellsWhatFails(page) {
    const well = await made("bulk fails not"), ill = await made("bulk fails");
    await page.goto(`${url}/det/experiments?search=bulk+fails`);
    await page.getByLabel(`Select experiment ${ill}`).check();
    await page.getByLabel(`Select experiment ${well}`).click({ modifiers: ["Shift"] });
    await page.getByText("2 selected").waitFor();
    await page.getByRole("button", { name: "Activate" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("heading", { name: "Activate 2 experiments?" }).waitFor();
    await api("POST", `/experiments/${ill}/kill`, {});
    await dialog.getByRole("button", { name: "Activate 2 experiments" }).click();
    await dialog.getByRole("heading", { name: "1 of 2 experiments activated" }).waitFor();
    const lines = await dialog.locator("tbody tr").allInnerTexts();
    check(lines.length === 1 && lines[0].includes(String(ill)), `told: ${lines}`);
    await pictures(page, "experiments-bulk-failed");
    await dialog.getByRole("button", { name: "Close" }).click();
    await page.getByText("1 selected").waitFor();
    check(await page.getByLabel(`Select experiment ${ill}`).isChecked(), "the one that failed is not the one that stays selected");
    await api("POST", `/experiments/${well}/kill`, {});
}

/* One real row, a hundred thousand times: only what is in sight may be asked for. */
async function scrolls(page) {
    const TOTAL = 100_000, { experiments: [e] } = await api("GET", "/experiments?limit=1"), asked = [];
    await page.route(/\/api\/v1\/experiments\?/, (route) => {
        const q = new URL(route.request().url()).searchParams, offset = Number(q.get("offset")), limit = Number(q.get("limit"));
        asked.push([offset, limit]);
        const n = Math.max(0, Math.min(limit, TOTAL - offset));
        const experiments = Array.from({ length: n }, (_, i) => ({ ...e, id: TOTAL - offset - i, name: `run ${offset + i}` }));
        const pagination = { offset, limit, startIndex: offset, endIndex: offset + n, total: TOTAL };
        return route.fulfill({ json: { experiments, pagination } });
    });
    await page.goto(`${url}/det/experiments`);
    await page.getByText("100,000 experiments").waitFor();
    const box = page.getByRole("region", { name: "List of experiments" });
    for (const part of [0.5, 1, 0.25]) {
        await box.evaluate((b, f) => { b.scrollTop = f * (b.scrollHeight - b.clientHeight); }, part);
        const want = Math.round(part * (TOTAL - 20));
        const names = () => page.locator("tr[data-experiment] th").allInnerTexts();
        await until(async () => (await names()).some((t) => Math.abs(Number(t.slice(4)) - want) < 40), `rows near ${want}`);
        check(await page.locator("table.list tbody tr").count() < 100, "rows out of sight are in the document");
    }
    check(asked.every(([, limit]) => limit <= 150), `asked for ${asked.join(" | ")}`);
    await pictures(page, "experiments-many");
    await page.unroute(/\/api\/v1\/experiments\?/);
}

export default async function ({ page }) {
    await archivesWhatMatches(page);
    await moves(page);
    await pauses(page);
    await tellsWhatFails(page);
    await scrolls(page);
}
