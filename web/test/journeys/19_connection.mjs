// The connection is lost and comes back: a banner says so, what is typed stays, what is asked for meanwhile is told of, and the page goes on by itself.
import { api, check, create, isValidation, pictures, until, url } from "./harness.mjs";

const config = { name: "seen again", entrypoint: ["true"], hyperparameters: {}, searcher: { name: "single", metric: "x", max_length: { batches: 1 } } };

/* The master is away as the page, or a log on it, asks for the first time: it asks again, and says so. */
async function awayAtFirst(page, id, route, words, there) {
    const failures = ["abort", 503];
    await page.route(route, (r) => {
        const now = failures.shift();
        return now === "abort" ? r.abort() : now ? r.fulfill({ status: now, json: { error: { error: "not yet" } } }) : r.continue();
    });
    await page.goto(`${url}/det/trials/${id}/logs`);
    await page.getByText(words).waitFor();
    await there.waitFor(); // nobody pressed anything
    check(!failures.length && await page.getByText(words).count() === 0, `${failures.length} answers were not asked for`);
    await page.unroute(route);
}

export default async function ({ page }) {
    page.mayFail = [isValidation, (r) => r.status() === 503];
    page.maySay.push(/ERR_INTERNET_DISCONNECTED/, /ERR_FAILED/);
    const id = await create(config, null, false), banner = page.getByText("The master does not answer."), lost = (is) => page.context().setOffline(is);
    await page.goto(`${url}/det/experiments/${id}`);
    await page.getByText("paused").first().waitFor();
    await page.getByRole("button", { name: "Edit", exact: true }).click();
    const form = page.getByRole("dialog", { name: `Edit experiment ${id}` });
    await form.getByLabel("Description").fill("typed while nobody listens");
    await lost(true);
    await form.getByRole("button", { name: "Save" }).click();
    await form.getByRole("alert").getByText("the master does not answer").waitFor();
    await banner.waitFor({ state: "attached" });
    await pictures(page, "connection-lost");
    await api("POST", `/experiments/${id}/kill`, {}); // by somebody else
    await lost(false);
    await form.getByRole("button", { name: "Save" }).click();
    await form.waitFor({ state: "detached" });
    await banner.waitFor({ state: "detached" });
    await page.getByText("canceled").first().waitFor();
    check((await api("GET", `/experiments/${id}`)).experiment.description === "typed while nobody listens", "what was typed was not saved");
    await page.goto(`${url}/det/clusters`);
    await page.getByRole("table", { name: "Agents" }).waitFor();
    await lost(true);
    await banner.waitFor();
    check(await page.getByRole("table", { name: "Agents" }).count() === 1, "what was known is gone");
    await pictures(page, "connection-lost-cluster");
    await lost(false);
    await banner.waitFor({ state: "detached" }); // nobody pressed anything
    await until(async () => await page.getByRole("table", { name: "Agents" }).count() === 1, "the agents");
    const ran = await create({ ...config, entrypoint: ["echo", "here it is"], max_restarts: 0 }), trial = (await until(async () => (await api("GET", `/experiments/${ran}/trials`)).trials[0], "the trial")).id;
    await until(async () => /COMPLETED|ERROR/.test((await api("GET", `/experiments/${ran}`)).experiment.state), "it to end");
    const line = page.getByRole("log").getByText("here it is");
    await awayAtFirst(page, trial, /\/api\/v1\/me$/, /It cannot be told yet who you are: .*asked again by itself/, line);
    await awayAtFirst(page, trial, /\/logs\?.*limit=/, /The log could not be read: .*asked for again by itself/, line);
}
