// What is queued says why in the master's words; a remedy is pressed, and it starts.
import { api, check, create, exampleConfig, pictures, until, url } from "./harness.mjs";

const config = (name, slots) => ({ name, entrypoint: ["sleep", "600"], max_restarts: 0, hyperparameters: {}, resources: { slots_per_trial: slots },
    searcher: { name: "single", metric: "x", max_length: { batches: 1 } } });

// A slot that its host takes for unusable is no free one.
async function out(page) {
    await page.route("**/api/v1/agents*", async (route) => {
        const response = await route.fetch(), answer = await response.json();
        Object.values(answer.agents[0].slots).forEach((s) => Object.assign(s, { container: null, state: "AILING", stateText: "XID 79: it has fallen off the bus" }));
        await route.fulfill({ response, json: answer });
    });
    await page.goto(`${url}/det/clusters`);
    await page.locator(".slot.out").first().waitFor();
    await page.getByText("slot 0 is not usable: XID 79: it has fallen off the bus").waitFor();
    if (await page.locator(".slot.free").count() > 0) throw new Error("an unusable slot is shown as free");
    await pictures(page, "cluster-out");
    await page.unrouteAll({ behavior: "ignoreErrors" }); // the page asks once a second: one may be on its way
}

/* What is in the way tells no progress here: the other answers are put in its place. */
async function starts(page, why) {
    let given = { seconds: 3725, basis: "the slowest in the way" };
    await page.route("**/api/v1/*/*/why", async (route) => {
        const response = await route.fetch(), answer = await response.json();
        await route.fulfill({ response, json: { ...answer, expectedStart: given } });
    });
    await why.getByText("Expected to start in about 1 h 2 min (the slowest in the way).").waitFor();
    given = { seconds: null, basis: "nobody knows" };
    await why.getByText("When it starts cannot be told: nobody knows.").waitFor();
    await page.unrouteAll({ behavior: "ignoreErrors" });
}

/* A trial that trains tells how far it is: what waits for it is expected to start, by the master's own reckoning. */
async function expects(page, slots) {
    const trains = await create(`${exampleConfig("digits/const.yaml").replace("epochs: 12", "epochs: 100000").replace("epochs: 2\n", "epochs: 50\n")}resources: {slots_per_trial: ${slots}}\n`, "digits");
    await until(async () => (await api("GET", `/experiments/${trains}`)).experiment.state === "STATE_RUNNING", "it to train");
    const waits = await create(config("waits for it", slots)), told = () => api("GET", `/experiments/${waits}/why`);
    await until(async () => typeof (await told()).expectedStart?.seconds === "number", "an expected start");
    await page.goto(`${url}/det/experiments/${waits}`);
    await page.getByRole("button", { name: /why, and what would help/ }).click();
    await page.getByText(/^Expected to start in about \d/).waitFor();
    await pictures(page, "why-expected");
    for (const id of [trains, waits]) await api("POST", `/experiments/${id}/kill`, {});
    await until(async () => (await api("GET", "/resource-pools")).resourcePools[0].slotsUsed === 0, "both to have left");
}

/* What failed says so on its own page, by the trial that did; a sentence that is all there is has nothing to open. */
async function failed(page) {
    const id = await create({ ...config("fails", 1), entrypoint: ["false"] });
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_ERROR", "it to fail");
    const trial = (await api("GET", `/experiments/${id}/trials`)).trials[0].id, { text } = await api("GET", `/trials/${trial}/why`);
    await page.goto(`${url}/det/experiments/${id}`);
    const why = page.getByRole("region", { name: "Why it ended" });
    await why.getByText(`Trial ${trial}: ${text}`).waitFor();
    check(await why.getByRole("button").count() === 0, "a button that opens nothing");
    await pictures(page, "why-failed");
    return id;
}

/* The database refuses no deletion here: the answers of one that it refused are put in the place of what the master says. */
async function notDeleted(page, id) {
    const text = "it could not be deleted: others_trial_fkey <b>\u202e", help = { text: "once that is mended, delete it again", command: `det experiment delete ${id}` };
    await page.route(`**/api/v1/experiments/${id}`, async (route) => {
        const response = await route.fetch(), { experiment } = await response.json();
        await route.fulfill({ response, json: { experiment: { ...experiment, state: "STATE_DELETE_FAILED" } } });
    });
    await page.route(`**/api/v1/experiments/${id}/why`, (route) => route.fulfill({ json: { waiting: false, reason: "ENDED", text, blockers: [], blockersTotal: 0, suggestions: [help], expectedStart: null } }));
    await page.goto(`${url}/det/experiments/${id}`);
    const why = page.getByRole("region", { name: "Why it ended" });
    await why.getByText(text.replace("\u202e", "\ufffd")).waitFor();
    await why.getByRole("button", { name: /what would help/ }).click();
    await why.getByText(help.command).waitFor();
    await page.getByRole("button", { name: "Delete", exact: true }).waitFor();
    await pictures(page, "why-not-deleted");
    await page.unrouteAll({ behavior: "ignoreErrors" });
}

export default async function ({ page }) {
    const slots = Object.keys((await api("GET", "/agents")).agents[0].slots).length;
    const state = async (id) => (await api("GET", `/experiments/${id}`)).experiment.state;
    await until(async () => (await api("GET", "/resource-pools")).resourcePools[0].slotsUsed === 0, "an idle cluster");
    const first = await create(config("first", slots));
    await until(async () => (await state(first)) === "STATE_RUNNING", "the first to run");
    const second = await create(config("second", slots));
    await page.goto(`${url}/det/clusters`);
    const row = page.locator(`tr[data-job="${second}"]`);
    await row.getByText("queued").waitFor();
    await page.locator(".slot.taken").nth(slots - 1).waitFor();
    await row.getByRole("button", { name: "Why?" }).click();
    const why = page.getByRole("region", { name: "Why it waits" }), { text, blockers, expectedStart } = await api("GET", `/experiments/${second}/why`);
    await why.getByText(text).waitFor();
    check(blockers.length === 1 && blockers[0].experimentId === first, `in the way are ${JSON.stringify(blockers)}`);
    await why.getByRole("listitem").filter({ has: page.getByRole("link", { name: `experiment ${first}`, exact: true }) }).getByText(`${slots} slots, admin`).waitFor();
    await why.getByText(typeof expectedStart.seconds === "number" ? /^Expected to start in about \d/ : `When it starts cannot be told: ${expectedStart.basis}.`).waitFor();
    await starts(page, why);
    const trial = (await api("GET", `/experiments/${first}/trials`)).trials[0].id;
    await page.getByRole("link", { name: new RegExp(`^slot 0 of .*: experiment ${first}, trial ${trial}, of admin, since \\d{4}-`) }).waitFor();
    await page.getByText(`${slots} slots: trial ${trial} of admin for`).waitFor();
    await pictures(page, "cluster");
    await why.getByRole("button", { name: new RegExp(`^pause experiment ${first} `) }).click();
    await page.getByRole("dialog").getByText(`det experiment pause ${first}`).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Do it" }).click();
    await page.getByText(`Done: det experiment pause ${first}`).waitFor();
    await row.getByText("running").waitFor();
    if (await state(second) !== "STATE_RUNNING") throw new Error("what was queued does not run");
    const held = await create(config("held", 1), null, false);
    await page.goto(`${url}/det/experiments/${held}`);
    await page.getByRole("button", { name: /why, and what would help/ }).click();
    await page.getByRole("button", { name: /activate the experiment/ }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Do it" }).click();
    await page.getByText(`Done: det experiment activate ${held}`).waitFor();
    await until(async () => (await state(held)) !== "STATE_PAUSED", "it to be active");
    for (const id of [first, second, held]) await api("POST", `/experiments/${id}/kill`, {});
    await until(async () => (await api("GET", "/resource-pools")).resourcePools[0].slotsUsed === 0, "both to have left"); // rows that go move those below
    await expects(page, slots);
    await out(page);
    await notDeleted(page, await failed(page));
}
