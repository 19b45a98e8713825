// Who has a role in one workspace sees all of the cluster, as everybody does, but is offered only what the master will do for them: there all of an
// editor's, elsewhere nothing but to look. What is the administrators' alone, webhooks with the secrets of their URLs, is nowhere to be found.
import { api, check, create, isAnswer, pictures, signIn, until, url } from "./harness.mjs";

const NAME = "olga.elsewhere", PASSWORD = "a long enough word", SECRET = "a-secret-of-the-path";
const config = (name, project) => ({ name, project, workspace: project && "olga's lab", entrypoint: ["true"], hyperparameters: { [`only_of_${name}`]: 1 },
    searcher: { name: "single", metric: "x", max_length: { batches: 1 } } });
const ACTIONS = ["Activate", "Pause", "Cancel", "Kill", "Archive", "Edit", "Move…", "Delete"];

async function begins() {
    const { workspace } = await api("POST", "/workspaces", { name: "olga's lab" });
    await api("POST", `/workspaces/${workspace.id}/projects`, { name: "inside", workspaceId: workspace.id });
    const { user } = await api("POST", "/users", { user: { username: NAME, active: true }, password: PASSWORD, isHashed: false });
    const { roles } = await api("POST", "/roles/search", { limit: 100 }), editor = roles.find((r) => r.name === "Editor").roleId;
    await api("POST", "/roles/add-assignments", { userRoleAssignments: [{ userId: user.id, roleAssignment: { role: { roleId: editor }, scopeWorkspaceId: workspace.id } }], groupRoleAssignments: [] });
    const triggers = [{ triggerType: "TRIGGER_TYPE_EXPERIMENT_STATE_CHANGE", condition: { state: "COMPLETED" } }];
    const { webhook } = await api("POST", "/webhooks", { webhook: { url: `http://127.0.0.1:1/${SECRET}`, webhookType: "WEBHOOK_TYPE_DEFAULT", triggers } });
    return { hook: webhook.id, mine: await create(config("inside", "inside"), null, false), theirs: await create(config("outside"), null, false) };
}

const offered = (other) => other.getByRole("main").getByRole("button").evaluateAll((all, actions) => all.map((b) => b.textContent).filter((t) => actions.includes(t)), ACTIONS);

async function experiments(other, { mine, theirs }) {
    await other.goto(`${url}/det/experiments/${theirs}`);
    await other.getByRole("heading", { name: "outside" }).waitFor();
    await until(async () => !(await offered(other)).length, "no button that is refused");
    await pictures(other, "elsewhere");
    await other.goto(`${url}/det/experiments/${mine}`);
    await other.getByRole("button", { name: "Kill", exact: true }).waitFor();
    const has = await offered(other);
    check(["Activate", "Kill", "Edit", "Move…"].every((b) => has.includes(b)), `offered there: ${has}`);
}

/* Of both that are chosen the one that may be is killed, and the other is told of. */
async function bulk(other, { mine, theirs }) {
    await other.goto(`${url}/det/experiments`);
    for (const id of [mine, theirs]) await other.locator(`tr[data-experiment="${id}"]`).getByRole("checkbox").check();
    await other.getByRole("button", { name: "Kill", exact: true }).click();
    await other.getByRole("dialog").getByText("Of those selected, 1 is not yours to change").waitFor();
    await other.getByRole("dialog").getByRole("button", { name: /^Kill/ }).click();
    await until(async () => (await api("GET", `/experiments/${mine}`)).experiment.state === "STATE_CANCELED", "one's own to be killed");
    check((await api("GET", `/experiments/${theirs}`)).experiment.state === "STATE_PAUSED", "another's was killed");
    await pictures(other, "elsewhere-bulk");
}

/* Neither the page nor any answer that it got has the URL, and no place leads there. */
async function webhooks(other, heard) {
    check(!await other.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Webhooks" }).count(), "a link to what is refused");
    await other.keyboard.press("Control+k");
    await other.getByRole("dialog").getByRole("combobox").fill("webhooks");
    check(!await other.getByRole("option", { name: /webhook/i }).count(), "a command to what is refused");
    await other.keyboard.press("Escape");
    for (const address of ["webhooks", "master", "users", "tokens", "workspaces"]) {
        await other.goto(`${url}/det/${address}`);
        await other.getByRole("main").getByRole("heading", { level: 1 }).waitFor();
        check(!(await other.content()).includes(SECRET), `${address} has a webhook's URL`);
    }
    const asked = await other.evaluate(() => Promise.all(["/api/v1/webhooks", "/api/v1/webhooks/signing-key"].map((p) => fetch(p).then((r) => r.status))));
    check(asked.every((s) => s === 403), `by hand: ${asked}`);
    check(!heard.some((text) => text.includes(SECRET)), "an answer has a webhook's URL");
}

export default async function ({ stranger }) {
    const made = await begins(), other = await stranger(), heard = [];
    other.on("response", (r) => { if (new URL(r.url()).pathname.startsWith("/api/")) void r.text().then((t) => heard.push(t), () => 0); });
    other.mayFail = [isAnswer(403, "GET /api/v1/webhooks"), isAnswer(403, "GET /api/v1/webhooks/signing-key"), (r) => r.status() === 403];
    await other.goto(`${url}/det/experiments`);
    await signIn(other, NAME, PASSWORD);
    await other.locator(`tr[data-experiment="${made.theirs}"]`).waitFor();
    await experiments(other, made);
    await bulk(other, made);
    await webhooks(other, heard);
    check(!other.said.length, other.said.join("\n"));
    await other.context().close();
    await api("DELETE", `/webhooks/${made.hook}`);
    await api("POST", `/experiments/${made.theirs}/kill`, {});
}
