// The master is killed and started again, and a standby takes over, both under an open page: it says so, keeps what is typed, and goes on by itself.
import { api, check, create, pictures, url } from "./harness.mjs";

const { DET_TEST_FRONT: front, DET_TEST_MASTERS: control } = process.env;
const config = (name) => ({ name, entrypoint: ["true"], hyperparameters: {}, searcher: { name: "single", metric: "x", max_length: { batches: 1 } } });

async function masters(act) {
    const r = await fetch(`${control}/${act}`, { method: "POST" });
    check(r.ok, `${act}: ${r.status}`);
}

/* Something is typed, the master goes, and one comes by `comes`: what is saved then was typed before. */
async function outlives(page, address, id, name, comes) {
    const banner = page.getByText("The master does not answer."), text = `typed before: ${name}`;
    await page.goto(`${address}/det/experiments/${id}`);
    await page.getByText("paused").first().waitFor();
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    const form = page.getByRole("dialog", { name: `Edit experiment ${id}` });
    await form.getByLabel("Description").fill(text);
    await masters("kill");
    await banner.waitFor({ state: "attached" });
    await form.getByRole("button", { name: "Save" }).click();
    await form.getByRole("alert").getByText("the master does not answer").waitFor();
    await pictures(page, `masters-${name}`);
    await masters(comes);
    await banner.waitFor({ state: "detached" });
    const r = await fetch(`${address}/api/v1/experiments/${id}`, { method: "PATCH", headers: { Authorization: `Bearer ${process.env.DET_TEST_TOKEN}` }, body: JSON.stringify({ id, name: `by others after the ${name}` }) });
    check(r.ok, `by others: ${r.status}`);
    await page.locator("h1", { hasText: `by others after the ${name}` }).waitFor(); // nobody pressed anything
    check(await form.getByLabel("Description").inputValue() === text, "what was typed is gone");
    await form.getByRole("button", { name: "Save" }).click();
    await form.waitFor({ state: "detached" });
    await page.getByText(text).waitFor();
}

export default async function ({ page }) {
    page.mayFail = [(r) => r.status() === 503]; // of one that does not lead yet
    page.maySay.push(/net::ERR_/);
    const id = await create(config("outlives its masters"), null, false);
    await outlives(page, url, id, "restart", "start");
    await masters("stand_by");
    await outlives(page, front, id, "failover", "take_over");
    check(await api("GET", "/master").then(() => false, () => true), "the one that was killed answers");
    await masters("back");
    await page.goto(`${url}/det/experiments/${id}`);
    await page.getByText("typed before: failover").waitFor(); // what the standby took
    await api("POST", `/experiments/${id}/kill`, {});
}
