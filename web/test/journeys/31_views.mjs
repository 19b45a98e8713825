// A view is saved and shown in a workspace; another opens it by its name and by its link, sees the same, and keeps their own settings. Renamed, no longer
// shown, deleted. Who may not change it has no button, and is told so when they ask by hand.
import { api, check, create, isAnswer, pictures, signIn, until, url } from "./harness.mjs";

const NAME = "vera.views", PASSWORD = "a long enough word", LONG = "zx".repeat(450), EVIL = "<img src=x onerror=alert(1)> 5%";

async function saves(page) {
    const views = page.getByRole("navigation", { name: "Views" }), dialog = page.getByRole("dialog");
    await page.goto(`${url}/det/experiments?search=${LONG}&c=id,name,owner`);
    await page.getByText(/no experiment/i).first().waitFor();
    await views.getByRole("button", { name: "Save this view…" }).click();
    await dialog.getByLabel("Name").fill(EVIL);
    await dialog.getByLabel("Shown to").selectOption({ label: "everybody, in Uncategorized" });
    await pictures(page, "view-share");
    await dialog.getByRole("button", { name: "Save", exact: true }).click();
    await views.getByRole("link", { name: EVIL }).getByText("shown in Uncategorized").waitFor();
    await pictures(page, "views");
    return (await api("GET", "/views")).views[0];
}

async function opens(other, view) {
    const views = other.getByRole("navigation", { name: "Views" });
    await other.goto(`${url}/det/views/${view.id}`);
    await signIn(other, NAME, PASSWORD);
    await until(() => other.url() === url + view.address, "what the view shows");
    await views.getByText("Shown by others (1)").click();
    await views.getByRole("link", { name: EVIL }).getByText("admin, in Uncategorized").waitFor();
    check(!await views.getByRole("button", { name: /^Change the view/ }).count(), "a button that does nothing");
    await pictures(other, "views-of-others");
    await other.goto(`${url}/det/experiments`);
    await other.getByRole("columnheader", { name: "started" }).waitFor(); // their own columns
    const status = await other.evaluate(async (id) => (await fetch(`/api/v1/views/${id}`, { method: "DELETE", headers: { "X-Det-Page": "1" } })).status, view.id);
    check(status === 403, `deleted by another: ${status}`);
}

async function takesBack(page, other, view) {
    const views = page.getByRole("navigation", { name: "Views" }), dialog = page.getByRole("dialog");
    await views.getByRole("button", { name: "Change the view" }).click();
    await pictures(page, "view-change");
    await dialog.getByLabel("Name").fill("mine");
    await dialog.getByLabel("Shown to").selectOption({ label: "nobody else" });
    await dialog.getByRole("button", { name: "Keep" }).click();
    await views.getByRole("link", { name: "mine", exact: true }).waitFor();
    await other.goto(`${url}/det/views/${view.id}`);
    await other.getByRole("alert").getByText(`view ${view.id} not found`).waitFor();
    await other.getByRole("navigation", { name: "Views" }).getByText("Shown by others").waitFor({ state: "detached" });
    await views.getByRole("button", { name: "Change the view" }).click();
    await dialog.getByRole("button", { name: "Delete this view" }).click();
    await dialog.getByRole("button", { name: "Delete", exact: true }).click();
    await views.getByRole("link").waitFor({ state: "detached" });
}

export default async function ({ page, stranger }) {
    await api("POST", "/users", { user: { username: NAME, active: true }, password: PASSWORD, isHashed: false });
    // one row, so that there is a table with columns
    const id = await create({ name: "seen", entrypoint: ["true"], hyperparameters: {}, searcher: { name: "single", metric: "x", max_length: { batches: 1 } } }, null, false);
    const view = await saves(page), other = await stranger();
    other.mayFail = [isAnswer(403, `DELETE /api/v1/views/${view.id}`), isAnswer(404, `GET /api/v1/views/${view.id}`)];
    await opens(other, view);
    await takesBack(page, other, view);
    await api("POST", `/experiments/${id}/kill`, {});
    check(!other.said.length, other.said.join("\n"));
}
