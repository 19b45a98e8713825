// A session that ends elsewhere while somebody writes: signing in again in place loses nothing, and what is shown goes on.
import { check, create, api, isValidation, pictures, signIn, until, url } from "./harness.mjs";

const password = process.env.DET_TEST_PASSWORD;
const isOut = (r) => r.status() === 401;

async function ends(page) {
    const r = await page.request.post(`${url}/api/v1/auth/logout`, { headers: { "X-Det-Page": "1" } });
    check(r.ok(), `not ended: ${r.status()}`);
}

export default async function ({ page }) {
    page.mayFail = [isOut, isValidation];
    page.maySay.push(/ERR_INCOMPLETE_CHUNKED_ENCODING/); // the master cuts what an ended session reads
    const id = await create({ name: "seen by who left", entrypoint: ["true"], hyperparameters: {}, searcher: { name: "single", metric: "x", max_length: { batches: 1 } } }, null, false);
    await page.goto(`${url}/det/models`);
    await page.getByRole("button", { name: "New model…" }).click();
    const form = page.getByRole("dialog", { name: "New model" }), again = page.getByRole("dialog", { name: "Sign in again" });
    await form.getByLabel("Name").fill("written before");
    await form.getByLabel("Description").fill("a long text that nobody wants to write twice");
    await ends(page);
    await form.getByRole("button", { name: "Create" }).click();
    await again.getByText("What you have typed is still there.").waitFor();
    for (let i = 0; i < 4; i++) await page.keyboard.press("Escape"); // a browser lets a page refuse it once
    await again.waitFor(); // there is no way around it but out
    await pictures(page, "session-ended");
    await signIn(page, "admin", "not it");
    await again.getByText("Incorrect username or password.").waitFor();
    await signIn(page, "admin", password);
    await again.waitFor({ state: "detached" });
    check(await form.getByLabel("Description").inputValue() === "a long text that nobody wants to write twice", "what was typed is gone");
    await form.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "written before" }).waitFor();
    await page.goto(`${url}/det/experiments/${id}`);
    await page.getByText("paused").first().waitFor();
    await ends(page);
    await again.waitFor();
    await api("POST", `/experiments/${id}/kill`, {});
    await signIn(page, "admin", password);
    await page.getByText("canceled").first().waitFor(); // it is asked for again
    await ends(page);
    await page.goto(`${url}/det/experiments`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await signIn(page, "admin", password);
    await until(async () => await page.getByRole("heading", { name: "Experiments" }).count() > 0, "the list");
    await api("DELETE", "/models/written%20before");
}
