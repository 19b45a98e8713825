// Who may only look sees no button that the master would refuse, and is told what it takes; by hand it is refused; with a role the buttons are there.
import { api, check, create, isAnswer, pictures, signIn, until, url } from "./harness.mjs";

const NAME = "victor.looks", PASSWORD = "a long enough word";
const config = (name) => ({ name, entrypoint: ["true"], hyperparameters: {}, searcher: { name: "single", metric: "x", max_length: { batches: 1 } } });

async function has(page, texts, where) {
    const all = await page.locator("main :is(button, a.button)").allInnerTexts();
    for (const [text, is] of Object.entries(texts)) check(all.includes(text) === is, `${where}: ${text} is ${is ? "not " : ""}there, of ${all}`);
}

async function looks(other, id) {
    await other.getByText("You may look at this experiment; to change it takes the owner, an administrator or a role in the workspace.").waitFor();
    await has(other, { Activate: false, Cancel: false, Kill: false, Edit: false, "Move…": false, Fork: true }, "the experiment");
    await pictures(other, "experiment-looks");
    await other.goto(`${url}/det/experiments/${id}?tab=notes`);
    await other.getByText("No notes.").waitFor();
    await has(other, { "Edit notes": false }, "the notes");
    await other.goto(`${url}/det/experiments`);
    await other.getByLabel(`Select experiment ${id}`).check();
    await other.getByRole("button", { name: "Kill", exact: true }).click(); // what is their own they may
    await other.getByText("Of those selected, 1 is not yours to change: that takes the owner").waitFor();
    await other.goto(`${url}/det/clusters`);
    await other.getByText("To drain and to enable them takes an administrator.").waitFor();
    await other.locator(`tr[data-job="${id}"]`).waitFor();
    await has(other, { Drain: false, "Change…": false, "Why?": true }, "the cluster");
    check(await other.getByRole("link", { name: "Use over time" }).count() === 0, "a link to what is refused");
    await pictures(other, "cluster-looks");
    for (const [address, sentence, button] of [["users", "all else takes an administrator", "New user…"], ["users?tab=groups", "to change them takes an administrator", "New group…"]]) {
        await other.goto(`${url}/det/${address}`);
        await other.getByText(sentence).waitFor();
        await has(other, { [button]: false, Deactivate: false }, address);
    }
    await pictures(other, "groups-looks");
}

export default async function ({ page, stranger }) {
    const { user } = await api("POST", "/users", { user: { username: NAME, active: true }, password: PASSWORD, isHashed: false });
    const id = await create(config("not victor's"), null, false), other = await stranger();
    other.mayFail = [isAnswer(403, `POST /api/v1/experiments/${id}/kill`)];
    await other.goto(`${url}/det/experiments/${id}`);
    await signIn(other, NAME, PASSWORD);
    await looks(other, id);
    const byHand = await other.evaluate((i) => fetch(`/api/v1/experiments/${i}/kill`, { method: "POST", headers: { "X-Det-Page": "1" } }).then((r) => r.status), id);
    check(byHand === 403, `by hand: ${byHand}`);
    const { roles } = await api("POST", "/roles/search", { limit: 100 }), editor = roles.find((r) => r.name === "EditorRestricted").roleId;
    await api("POST", "/roles/add-assignments", { userRoleAssignments: [{ userId: user.id, roleAssignment: { role: { roleId: editor }, scopeWorkspaceId: 1 } }], groupRoleAssignments: [] });
    await other.goto(`${url}/det/experiments/${id}`);
    await other.getByRole("button", { name: "Kill", exact: true }).waitFor();
    await has(other, { Activate: true, Edit: true, "Move…": false }, "with a role");
    await other.getByRole("button", { name: "Kill", exact: true }).click();
    await other.getByRole("dialog").getByRole("button", { name: "Kill" }).click();
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_CANCELED", "it to be killed");
    await other.context().close();
    await page.goto(`${url}/det/experiments/${id}`);
    await page.getByRole("button", { name: "Move…" }).waitFor();
}
