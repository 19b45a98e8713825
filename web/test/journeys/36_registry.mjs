// A checkpoint is downloaded, becomes a version of a model, cannot be deleted then; the model has notes and labels, is archived; a checkpoint is deleted and had back.
import { readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";
import { api, check, create, exampleConfig, isAnswer, pictures, until, url } from "./harness.mjs";

const EVIL = "<b>model</b>\u202e";

async function trained() {
    const id = await create(exampleConfig("digits/const.yaml").replace("epochs: 12", "epochs: 2"), "digits");
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_COMPLETED", "it to end");
    return [id, (await api("GET", `/experiments/${id}/trials`)).trials[0].id];
}

async function downloads(page, row, uuid) {
    const file = page.waitForEvent("download");
    await row.getByRole("button", { name: "Download" }).click();
    const got = await file, tar = gunzipSync(readFileSync(await got.path())).toString("latin1");
    check(got.suggestedFilename() === `${uuid}.tar.gz` && tar.includes("metadata.json"), "not the checkpoint's files");
}

/* The best is marked, for the trial and for its experiment; a new experiment begins with one, or with a trial's latest. */
async function warmStarts(page, experiment, trial, row, uuid) {
    const { bestCheckpoint } = (await api("GET", `/trials/${trial}`)).trial;
    await page.getByRole("table", { name: "Checkpoints" }).getByRole("row", { name: bestCheckpoint.uuid }).getByText("best", { exact: true }).waitFor();
    const begin = async (link, key, value) => {
        await link.click();
        await page.getByText("The master would take it.").waitFor();
        await page.getByLabel("begin paused").check();
        if (key === "source_checkpoint_uuid") await pictures(page, "create-warm");
        await page.getByRole("button", { name: "Create" }).click();
        await page.waitForURL(/experiments\/\d+$/);
        const made = Number(/(\d+)$/.exec(page.url())[1]), e = (await api("GET", `/experiments/${made}`)).experiment;
        check(e.config.searcher[key] === value && e.forkedFrom === experiment, JSON.stringify(e.config.searcher));
        return made;
    };
    const made = [await begin(row.getByRole("link", { name: "Warm start" }), "source_checkpoint_uuid", uuid)];
    await page.goto(`${url}/det/trials/${trial}`);
    made.push(await begin(page.locator(".head").getByRole("link", { name: "Warm start" }), "source_trial_id", trial));
    for (const id of made) await api("POST", `/experiments/${id}/kill`, {});
    await page.goto(`${url}/det/experiments/${experiment}`);
    await page.locator(".facts").getByRole("link", { name: bestCheckpoint.uuid.slice(0, 8) }).click();
    await page.getByRole("table", { name: "Checkpoints" }).getByRole("row", { name: bestCheckpoint.uuid }).getByText("best", { exact: true }).waitFor();
    await pictures(page, "experiment-checkpoints");
}

async function registers(page, row, name, makesNew) {
    await row.getByRole("button", { name: "Register…" }).click();
    const dialog = page.getByRole("dialog", { name: "Register a checkpoint" });
    if (makesNew) await dialog.getByLabel("Name of the new one").fill(name);
    else await dialog.getByRole("combobox", { name: "Model" }).selectOption({ label: name });
    await dialog.getByLabel("Comment").fill(EVIL);
    await dialog.getByLabel("Name of the version").fill("first");
    await dialog.getByLabel("Labels, one a line").fill("kept");
    await pictures(page, "checkpoint-register");
    await dialog.getByRole("button", { name: "Register" }).click();
    await page.getByText(`It is version 1 of ${name} now.`).waitFor();
}

async function model(page, name) {
    await page.getByRole("link", { name: "Models" }).click();
    await page.getByLabel("Search").fill("digi");
    await page.getByRole("table", { name: "Models" }).getByRole("link", { name }).click();
    await page.getByRole("heading", { name }).waitFor();
    await page.getByRole("table", { name: "Versions" }).getByText("<b>model</b>").waitFor();
    await page.getByRole("button", { name: "Edit…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Description").fill("reads digits");
    await dialog.getByLabel("Labels, one a line").fill(`ready\n${EVIL}`);
    await dialog.getByLabel("Metadata, as YAML").fill("- no keys");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("metadata has keys").waitFor();
    await dialog.getByLabel("Metadata, as YAML").fill(`source: ${JSON.stringify(EVIL)}\nsizes: [8, 16]\n`);
    await pictures(page, "model-edit");
    await dialog.getByRole("button", { name: "Save" }).click();
    await page.getByRole("table", { name: "Metadata" }).getByRole("row", { name: "sizes" }).getByText("[8,16]").waitFor();
    check(JSON.stringify((await api("GET", `/models/${encodeURIComponent(name)}`)).model.metadata) === JSON.stringify({ source: EVIL, sizes: [8, 16] }), "not what was written");
    await page.getByText("reads digits").waitFor();
    await page.getByRole("button", { name: "Edit notes" }).click();
    await page.getByLabel("Notes, in Markdown").fill("# Good to know\nnot <script>alert(1)</script> for letters");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("heading", { name: "Good to know" }).waitFor();
    await page.getByText("ready", { exact: true }).waitFor();
    await pictures(page, "model");
    await page.getByRole("table", { name: "Versions" }).getByRole("link", { name: "1 first", exact: true }).click();
    await page.locator(".head .chip", { hasText: "kept" }).waitFor();
    await page.getByText(`client.get_model("${name}")`).waitFor();
    await page.getByRole("table", { name: "Files" }).getByText("metadata.json").waitFor();
    await pictures(page, "model-version");
    await page.getByRole("link", { name, exact: true }).click();
    await page.getByRole("button", { name: "Archive" }).click();
    await page.getByRole("button", { name: "Unarchive" }).waitFor();
    await page.goto(`${url}/det/models`);
    await page.getByText("There is no model yet").waitFor();
    await page.getByLabel("archived ones, too").check();
    await page.getByRole("table", { name: "Models" }).getByRole("link", { name }).waitFor();
    await pictures(page, "models");
}

/* To another workspace, and away. */
async function moves(page, name) {
    const { workspace } = await api("POST", "/workspaces", { name: "for models" });
    await page.goto(`${url}/det/models/${encodeURIComponent(name)}`);
    await page.getByRole("button", { name: "Unarchive" }).click();
    await page.getByRole("button", { name: "Move…" }).click();
    await page.getByRole("dialog").getByRole("combobox").selectOption({ label: "for models" });
    await page.getByRole("dialog").getByRole("button", { name: "Move", exact: true }).click();
    await page.locator(".facts").getByRole("link", { name: "for models" }).waitFor();
    check((await api("GET", `/models/${encodeURIComponent(name)}`)).model.workspaceId === workspace.id, "it is where it was");
    await page.getByRole("button", { name: `Delete ${name}`, exact: true }).click();
    await page.getByRole("dialog").getByText(`det model delete '${name}'`).waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.waitForURL(`${url}/det/models`);
    check(!(await api("GET", "/models")).models.length, "it is there still");
    await api("DELETE", `/workspaces/${workspace.id}`);
}

export default async function ({ page }) {
    const [experiment, trial] = await trained(), name = "digits by hand";
    page.mayFail = [isAnswer(400, "DELETE /api/v1/checkpoints")];
    const { checkpoints } = await api("GET", `/trials/${trial}/checkpoints?sortByAttr=SORT_BY_END_TIME&orderBy=ORDER_BY_DESC`), uuid = checkpoints[0].uuid;
    await page.goto(`${url}/det/trials/${trial}`);
    const row = page.getByRole("table", { name: "Checkpoints" }).getByRole("row", { name: uuid });
    await downloads(page, row, uuid);
    await registers(page, row, name, true);
    const confirm = async (button) => {
        await row.getByRole("button", { name: button }).click();
        await page.getByRole("dialog").getByRole("button", { name: button }).click();
    };
    await confirm("Delete");
    await page.getByText(/^Not deleted: .*digits by hand/s).waitFor(); // the master names the model that it is in
    await page.getByRole("button", { name: "Close this message" }).last().click();
    await model(page, name);
    await moves(page, name);
    await page.goto(`${url}/det/trials/${trial}`);
    await confirm("Delete");
    await row.getByRole("button", { name: "Undelete" }).waitFor();
    await pictures(page, "checkpoint-deleted");
    await row.getByRole("button", { name: "Undelete" }).click();
    await row.getByRole("button", { name: "Download" }).waitFor();
    await warmStarts(page, experiment, trial, row, uuid); // for a while nobody may delete what was chosen to begin with
}
