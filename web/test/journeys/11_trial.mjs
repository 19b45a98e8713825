// A trial's page: its timeline is the API's, its profile is drawn and saved, a file of a checkpoint has a size.
import { readFileSync } from "node:fs";
import { api, check, create, exampleConfig, fitsIn, pictures, until, url } from "./harness.mjs";

const lines = async (path) => (await (await fetch(`${url}/api/v1${path}`, { headers: { Authorization: `Bearer ${process.env.DET_TEST_TOKEN}` } })).text()).split("\n").filter(Boolean).map((l) => JSON.parse(l).result);

/* What has ended stays as it is, and so does why: a search is not gone through again and again for it. */
async function restsWhenEnded(page, trial) {
    let asked = 0;
    page.on("request", (r) => { if (new URL(r.url()).pathname === `/api/v1/trials/${trial}/why`) asked++; });
    await page.clock.install();
    await page.goto(`${url}/det/trials/${trial}`);
    for (let i = 0; i < 3; i++) {
        await page.getByRole("region", { name: "Timeline" }).getByText(/\d+ events/).waitFor();
        await page.clock.runFor(10_000);
        await page.evaluate((id) => fetch(`/api/v1/trials/${id}`), trial);
    }
    check(asked <= 1, `asked ${asked} times why a trial that has ended is as it is`);
}

/* The page shows what the API says, and says of one that was reported without that there is none. */
async function hashesAreThere(page, trial) {
    const { checkpoints: [{ uuid }] } = await api("GET", `/trials/${trial}/checkpoints?states=STATE_COMPLETED`), { checkpoint } = await api("GET", `/checkpoints/${uuid}`);
    const rows = await page.locator("table.files tbody tr").evaluateAll((all) => all.map((r) => [...r.cells].map((c) => c.innerText)));
    for (const [name, size, digits] of rows) check(size !== "" && digits === (checkpoint.hashes[name] ?? "").replace(/^xxh128:/, ""), `${name}: ${size} ${digits}`);
    check(rows.length > 2 && rows.filter(([, , d]) => d).length === rows.length - 1, `${rows}`);
    return Object.fromEntries(rows.map(([name, , digits]) => [name, digits]));
}

export default async function ({ page, another }) {
    const config = `${exampleConfig("digits/const.yaml").replace("epochs: 12", "epochs: 60")}\nprofiling: {enabled: true}\n`;
    const id = await create(config, "digits"), plain = await create(exampleConfig("digits/const.yaml").replace("epochs: 12", "epochs: 1"), "digits");
    const ends = (e) => until(async () => (await api("GET", `/experiments/${e}`)).experiment.state === "STATE_COMPLETED", `experiment ${e} to end`);
    await Promise.all([ends(id), ends(plain)]);
    const trial = (await api("GET", `/experiments/${id}/trials`)).trials[0].id, other = (await api("GET", `/experiments/${plain}/trials`)).trials[0].id;
    const series = (await lines(`/trials/${trial}/profiler/available_series`)).at(-1).labels;
    check(series.length > 0, "the master has no profile");
    const asked = [], note = (r) => { if (r.url().includes("/metric-names")) asked.push(r.url()); };
    page.on("request", note);
    await page.goto(`${url}/det/trials/${trial}`);
    await page.locator(".curve-summary", { hasText: "★ the best checkpoint" }).waitFor();
    await page.getByRole("region", { name: "Metrics" }).getByRole("table").first().waitFor();
    page.off("request", note);
    check(asked.length === 1, `what a trial that has ended reports was asked for ${asked.length} times: curves and reports share it`);
    await pictures(page, "trial-star");
    const { events } = await api("GET", `/trials/${trial}/timeline`), timeline = page.getByRole("region", { name: "Timeline" });
    await timeline.getByText(`${events.length} events`).waitFor();
    await timeline.getByText("As a table").click();
    const kinds = await timeline.locator("td[data-label='what']").allInnerTexts();
    check(kinds.join() === events.map((e) => e.kind).join(), `the timeline has ${kinds}`);
    await timeline.getByText("As a table").click();
    const profile = page.getByRole("region", { name: "Profile" }), choice = profile.getByRole("combobox", { name: "of" });
    await profile.getByText(/: [1-9]\d* curves?, [1-9]\d* points?/).waitFor();
    const names = await choice.locator("option").evaluateAll((all) => all.map((o) => o.value));
    check(names.join() === [...new Set(series.map((s) => s.name))].sort().join(), `the profile offers ${names}`);
    await choice.selectOption(names.at(-1));
    await profile.getByText(new RegExp(`^${names.at(-1)}: `)).waitFor();
    check(new URL(page.url()).searchParams.get("profile") === names.at(-1), page.url());
    await profile.scrollIntoViewIfNeeded();
    await pictures(page, "trial-profile");
    const download = page.waitForEvent("download");
    await profile.getByRole("button", { name: "CSV" }).click();
    const text = readFileSync(await (await download).path(), "utf8");
    check(text.startsWith(`of,time,${names.at(-1)}\r\n`) && text.split("\r\n").length > 2, text.slice(0, 200));
    await page.goto(`${url}/det/trials/${other}`);
    await profile.getByText("Nothing was profiled").waitFor();
    await page.getByText(/^\d+ files$/).click();
    await page.getByRole("cell", { name: "metadata.json", exact: true }).waitFor();
    const hashes = await hashesAreThere(page, other);
    check(hashes["metadata.json"] === "", `metadata.json holds the hashes: ${hashes["metadata.json"]}`);
    await pictures(page, "checkpoint-files");
    await page.setViewportSize({ width: 320, height: 800 });
    await fitsIn(page, "the files of a checkpoint");
    await page.setViewportSize({ width: 1400, height: 1000 });
    await page.goto(`${url}/det/experiments/${id}`);
    await page.locator(".curve-summary", { hasText: "★ its best checkpoint" }).waitFor();
    await restsWhenEnded(await another(), other);
}
