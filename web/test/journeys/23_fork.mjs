// A fork keeps the comments of what it is of, has its files and goes to its project; what has ended is continued, longer; a name and labels are edited.
import { api, check, create, isAnswer, pictures, until, url } from "./harness.mjs";

const CONFIG = `# why it is as it is
name: first of its line
entrypoint: ["true"]
hyperparameters: {}
max_restarts: 0
searcher: {name: single, metric: x, max_length: {batches: 1}}
`;

async function forks(page, id) {
    await page.goto(`${url}/det/experiments/${id}`);
    await page.getByRole("link", { name: "Fork", exact: true }).click();
    await page.locator(".cm-content").getByText("# why it is as it is").waitFor();
    await page.getByText("The master would take it.").waitFor();
    await page.getByLabel("begin paused").check();
    await pictures(page, "create-fork");
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: /^Fork of first of its line #\d+$/ }).waitFor();
    await page.waitForURL(/experiments\/\d+$/);
    const fork = Number(/experiments\/(\d+)$/.exec(page.url())[1]), { experiment } = await api("GET", `/experiments/${fork}`);
    check(experiment.forkedFrom === id, `forked from ${experiment.forkedFrom}`);
    await page.getByRole("link", { name: "fork lab / fork place" }).waitFor();
    check(await page.getByRole("link", { name: `experiment ${id}`, exact: true }).getAttribute("href") === `/det/experiments/${id}`, "no link to what it is forked from");
    check(experiment.originalConfig === CONFIG.replace("first of its line", "\"Fork of first of its line\""), experiment.originalConfig);
    return fork;
}

async function edits(page, id) {
    await page.getByRole("button", { name: "Edit" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name").fill("second <b>of</b> its line");
    await dialog.getByLabel("Description").fill("said afterwards");
    await dialog.getByLabel("Labels").fill("one, with a comma\ntwo\n\ntwo\n");
    await pictures(page, "experiment-edit");
    await dialog.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("heading", { name: "second <b>of</b> its line" }).waitFor();
    await page.getByText("said afterwards").waitFor();
    await until(async () => (await page.locator("main .chip").allInnerTexts()).sort().join("|") === "one, with a comma|two", "the labels");
    const { experiment } = await api("GET", `/experiments/${id}`);
    check(experiment.labels.sort().join("|") === "one, with a comma|two", `labels ${experiment.labels}`);
    await page.getByRole("button", { name: "Edit" }).click();
    page.mayFail = [isAnswer(400, `PATCH /api/v1/experiments/${id}`)];
    await dialog.getByLabel("Name").fill("  ");
    await dialog.getByRole("button", { name: "Save", exact: true }).click();
    await dialog.getByRole("alert").getByText("name: must not be blank").waitFor();
    page.mayFail = [];
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
}

async function continues(page, id) {
    await api("POST", `/experiments/${id}/kill`, {});
    await page.getByRole("button", { name: "Continue" }).click();
    const dialog = page.getByRole("dialog"), changes = dialog.getByLabel("Changes of the configuration");
    page.mayFail = [isAnswer(400, "POST /api/v1/experiments/continue")];
    await changes.fill("searcher: {max_length: {batches: nine}}");
    await dialog.getByRole("button", { name: "Continue" }).click();
    await dialog.getByRole("alert").getByText("max_length").waitFor();
    page.mayFail = [];
    await changes.fill("searcher: {max_length: {batches: 9}}");
    await pictures(page, "experiment-continue");
    await dialog.getByRole("button", { name: "Continue" }).click();
    await dialog.waitFor({ state: "detached" });
    const { experiment } = await api("GET", `/experiments/${id}`);
    check(experiment.config.searcher.max_length.batches === 9, JSON.stringify(experiment.config.searcher));
    const [trial] = await until(async () => { const { trials } = await api("GET", `/experiments/${id}/trials`); return trials.length && trials; }, "its trial");
    await page.locator(".facts").getByRole("link", { name: "Log", exact: true }).click();
    await page.waitForURL(`${url}/det/trials/${trial.id}/logs`);
}

/* What has ended is archived, had back and deleted on its own page. */
async function putsAway(page, id) {
    await api("POST", `/experiments/${id}/kill`, {});
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_CANCELED", "it to end");
    await page.goto(`${url}/det/experiments/${id}`);
    const press = (name) => page.getByRole("button", { name, exact: true }).click(), archived = async () => (await api("GET", `/experiments/${id}`)).experiment.archived;
    await page.getByText("canceled").first().waitFor();
    check(await page.locator(".head .chip", { hasText: "archived" }).count() === 0, "archived before it is");
    await press("Archive");
    await page.locator(".head .chip", { hasText: "archived" }).waitFor();
    check(await archived(), "not archived");
    for (const name of ["Move…", "Fork"]) check(await page.locator(".head").getByText(name, { exact: true }).count() === 0, `${name} is offered, and would be refused`);
    await pictures(page, "experiment-archived");
    await press("Unarchive");
    await page.locator(".head .chip", { hasText: "archived" }).waitFor({ state: "detached" });
    check(!await archived(), "archived still");
    await press("Delete");
    await page.getByRole("dialog").getByText("cannot be had back").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Not now" }).click();
    check((await api("GET", `/experiments/${id}`)).experiment.state === "STATE_CANCELED", "deleted without a yes");
    await press("Delete");
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText(`Experiment ${id} is being deleted.`).waitFor();
    await page.getByRole("heading", { name: "Experiments" }).waitFor();
    await until(async () => !(await api("GET", "/experiments?limit=1000")).experiments.some((e) => e.id === id), "it to be gone");
}

export default async function ({ page }) {
    const { workspace } = await api("POST", "/workspaces", { name: "fork lab" }), { project } = await api("POST", `/workspaces/${workspace.id}/projects`, { name: "fork place", workspaceId: workspace.id });
    const first = await create(CONFIG, null, false);
    await api("POST", "/experiments/move", { experimentIds: [first], destinationProjectId: project.id });
    const fork = await forks(page, first);
    await edits(page, fork);
    await continues(page, fork);
    await putsAway(page, await create(CONFIG, null, false));
}
