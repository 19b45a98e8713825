// Workspaces and projects are made, archived, filled, renamed and deleted; a template is written, used and deleted; an old link opens its project.
import { api, check, create, isAnswer, isValidation, pictures, until, url } from "./harness.mjs";

const EVIL = "<i>place</i>\u0007";
const paused = { name: "moves", entrypoint: ["true"], hyperparameters: {}, searcher: { name: "single", metric: "x", max_length: { batches: 1 } } };

async function places(page) {
    await page.getByRole("link", { name: "Workspaces" }).click();
    await page.getByRole("button", { name: "New workspace…" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("Uncategorized");
    await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
    await page.getByRole("dialog").getByText("there is one of this name already").waitFor();
    await page.getByRole("dialog").getByLabel("Name").fill("the lab");
    await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "the lab" }).waitFor();
    await page.getByRole("button", { name: "New project…" }).click();
    await page.getByRole("dialog").getByLabel("Name").fill("digits");
    await page.getByRole("dialog").getByLabel("Description").fill(EVIL);
    await page.getByRole("dialog").getByRole("button", { name: "Create" }).click();
    await page.getByRole("table", { name: "Projects" }).getByText("<i>place</i>").waitFor();
    await pictures(page, "workspace");
}

async function move(page, id) {
    await page.goto(`${url}/det/experiments/${id}`);
    await page.getByRole("button", { name: "Move…" }).click();
    await page.getByRole("dialog").getByRole("combobox").selectOption({ label: "the lab / digits" });
    await page.getByRole("dialog").getByRole("button", { name: "Move", exact: true }).click();
    await page.getByText(`Experiment ${id} is in digits now.`).waitFor();
    const { projectId } = (await api("GET", `/experiments/${id}`)).experiment;
    await page.goto(`${url}/det/projects/${projectId}/experiments`); // as old links have it
    await page.getByRole("table", { name: "Experiments" }).getByRole("link", { name: `moves #${id}` }).waitFor();
    await pictures(page, "project");
    await page.goto(`${url}/det/workspaces`);
    const row = page.getByRole("row", { name: "the lab" });
    await row.getByRole("button", { name: "Archive" }).click();
    await row.getByText("archived", { exact: true }).waitFor();
    await pictures(page, "workspaces");
    await row.getByRole("button", { name: "Unarchive" }).click();
    await row.getByText("open").waitFor();
}

/* On the page of each: another name and what it is for; what holds something stays, what is empty goes. */
async function changes(page, id) {
    const dialog = page.getByRole("dialog"), press = (name) => dialog.getByRole("button", { name }).click();
    const { projectId } = (await api("GET", `/experiments/${id}`)).experiment, { project } = await api("GET", `/projects/${projectId}`);
    await page.goto(`${url}/det/projects/${projectId}`);
    await page.getByRole("button", { name: "Edit…" }).click();
    await dialog.getByLabel("Name").fill(`digits ${EVIL}`);
    await dialog.getByLabel("Description").fill("reads them");
    await pictures(page, "project-edit");
    await press("Save");
    await page.getByRole("heading", { name: "digits <i>place</i>" }).waitFor();
    await page.getByText("reads them").waitFor();
    await page.getByRole("button", { name: "Delete" }).click();
    await dialog.getByText("det project delete 'the lab'").waitFor();
    await press("Delete");
    await page.getByText(`Not deleted: project ${projectId} holds 1 experiment`).waitFor();
    await page.getByRole("button", { name: "Close this message" }).last().click();
    await api("POST", `/experiments/${id}/move`, { destinationProjectId: 1 });
    await page.getByRole("button", { name: "Delete" }).click();
    await press("Delete");
    await page.waitForURL(`${url}/det/workspaces/${project.workspaceId}`);
    await page.getByText("It has no project yet.").waitFor();
    await page.getByRole("button", { name: "Edit…" }).click();
    await dialog.getByLabel("Name").fill("the other lab");
    await press("Save");
    await page.getByRole("heading", { name: "the other lab" }).waitFor();
    await pictures(page, "workspace-empty");
    await page.getByRole("button", { name: "Delete" }).click();
    await press("Delete");
    await page.waitForURL(`${url}/det/workspaces`);
    await page.getByText("The workspace the other lab is deleted.").waitFor();
    await page.getByRole("row", { name: "Uncategorized" }).waitFor();
    check(await page.getByRole("row", { name: "the other lab" }).count() === 0, "it is listed still");
    check(await page.getByRole("row", { name: "Uncategorized" }).getByRole("button").count() === 0, "what every cluster has can be changed");
}

/* As if there were hundreds more than the first: the page says so, and its link asks for all. */
async function cut(page) {
    const asked = [], is = (u) => u.pathname === "/api/v1/workspaces";
    await page.route(is, async (route) => {
        const limit = new URL(route.request().url()).searchParams.get("limit"), r = await route.fetch(), body = await r.json();
        asked.push(limit);
        if (limit !== "-1") body.pagination.total = 1204;
        await route.fulfill({ response: r, json: body });
    });
    await page.goto(`${url}/det/workspaces`);
    const said = page.getByText(/^The first \d+ of 1,204 workspaces are shown\./);
    await said.waitFor();
    await pictures(page, "workspaces-cut");
    await page.getByRole("link", { name: "Show all" }).click();
    await said.waitFor({ state: "detached" });
    check(page.url().endsWith("/det/workspaces?all=1") && asked.includes("500") && asked.at(-1) === "-1", `${page.url()}: ${asked}`);
    await page.getByRole("row", { name: "the lab" }).waitFor();
    await page.unroute(is);
}

async function templates(page) {
    for (const key of ["g", "t"]) await page.keyboard.press(key);
    await page.getByRole("button", { name: "New template…" }).click();
    const write = async (text) => {
        await page.getByRole("textbox", { name: "What it says" }).click();
        for (const key of ["Control+a", "Delete"]) await page.keyboard.press(key);
        await page.keyboard.insertText(text);
    };
    await page.locator(".cm-content").waitFor();
    await page.getByLabel("Name").fill("two slots");
    await write("- no\n- map\n");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("a template has keys").waitFor();
    await write("resources:\n  slots_per_trial: 2 # both\n");
    await pictures(page, "template");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("row", { name: "two slots" }).getByText("resources").waitFor();
    await pictures(page, "templates");
    check((await api("GET", "/templates/two%20slots")).template.config.resources.slots_per_trial === 2, "not what was written");
    await page.goto(`${url}/det/experiments/new`);
    await page.getByRole("combobox", { name: "Template" }).selectOption("two slots");
    await page.goto(`${url}/det/templates`);
    await page.getByRole("row", { name: "two slots" }).getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByText("There is no template yet.").waitFor();
}

/* What Determined's page kept for the reader is a link; what it kept is left as it is. */
async function former(page) {
    const settings = [["filterset", JSON.stringify({ showArchived: false, filterGroup: { kind: "group", conjunction: "and", children: [{ kind: "field", columnName: "name", operator: "contains", value: "no such <b>" }] } })],
        ["sortString", "numTrials=asc"]].map(([key, value]) => ({ key, storagePath: "experimentListingForProject1", value: JSON.stringify(value) }));
    await api("POST", "/users/setting", { settings });
    await page.goto(`${url}/det/projects/1`);
    await page.getByRole("link", { name: "As you had them listed" }).click();
    await page.getByText("No experiment matches.").waitFor();
    check(new URL(page.url()).searchParams.get("sort") === "trials", page.url());
    const { settings: left } = await api("GET", "/users/setting");
    check(settings.every((s) => left.some((l) => l.storagePath === s.storagePath && l.key === s.key && l.value === s.value)), "the settings were changed");
    await page.getByText("Conditions: 2").waitFor();
    await page.getByRole("button", { name: "Show all" }).click();
    await page.locator("tr[data-experiment]").first().waitFor(); // of however many, by number of trials
}

export default async function ({ page }) {
    page.mayFail = [isAnswer(409, "POST /api/v1/workspaces"), isAnswer(400, "POST /api/v1/workspaces"), isValidation, (r) => r.request().method() === "DELETE" && r.status() === 400];
    const id = await create(paused, null, false);
    await places(page);
    await move(page, id);
    await cut(page);
    await templates(page);
    await former(page);
    await changes(page, id);
    check(await page.locator("main :is(i, b, img, script)").count() === 0, "a name became an element");
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment, "it");
    await api("POST", `/experiments/${id}/kill`, {});
}
