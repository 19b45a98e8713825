// A webhook is made, tried, seen to fail and then to be taken, and deleted; mistakes are told where they are; who may not is not led there.
import { createServer } from "node:http";
import { api, check, create, isAnswer, pictures, signIn, until, url } from "./harness.mjs";

const NAME = "wendy.hooks", PASSWORD = "a long enough word", SECRET = "<img src=x onerror=alert(1)>";
const config = { name: "told", entrypoint: ["true"], hyperparameters: {}, searcher: { name: "single", metric: "x", max_length: { batches: 1 } } };

async function receiver() {
    const got = { status: 500, bodies: [] };
    const server = createServer((req, res) => {
        let text = "";
        req.on("data", (part) => { text += part; });
        req.on("end", () => {
            got.bodies.push(JSON.parse(text));
            res.writeHead(got.status).end();
        });
    });
    await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
    return { got, url: `http://127.0.0.1:${server.address().port}/T0/abc`, close: () => server.close() };
}

async function makes(page, to) {
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Webhooks" }).click();
    await page.getByText("Nobody is told of anything yet.").waitFor();
    await page.getByRole("button", { name: "New webhook…" }).click();
    const dialog = page.getByRole("dialog", { name: "New webhook" });
    await dialog.getByLabel("URL").fill("http://169.254.169.254/latest");
    await dialog.getByLabel("canceled").check();
    await dialog.getByLabel("When a line").fill("(");
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByText("no webhook is sent to 169.254.169.254").waitFor();
    await pictures(page, "webhook-new");
    await dialog.getByLabel("URL").fill(to);
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.getByText("regex").waitFor();
    await dialog.getByLabel("When a line").fill(SECRET);
    await dialog.getByRole("button", { name: "Create" }).click();
    await dialog.waitFor({ state: "detached" });
    await page.getByRole("row", { name: "127.0.0.1" }).getByText(SECRET).waitFor();
}

async function tells(page, to) {
    const row = page.getByRole("row", { name: "127.0.0.1" });
    await row.getByRole("button", { name: "Test" }).click();
    await page.getByText("Not taken: the test was not taken: 127.0.0.1 answered 500").waitFor();
    const id = await create(config, null, false);
    await api("POST", `/experiments/${id}/kill`, {});
    await row.getByText("1 event waiting").waitFor();
    await pictures(page, "webhooks");
    to.got.status = 204;
    await row.getByText("all taken").waitFor();
    check(to.got.bodies.some((b) => b.event_data.experiment?.id === id && b.condition.state === "CANCELED"), "the event was not told");
    await row.getByRole("button", { name: "Test" }).click();
    await page.getByText("127.0.0.1").filter({ hasText: "has taken a test." }).waitFor();
    await page.getByRole("button", { name: "Show the signing key" }).click();
    await page.getByRole("region", { name: "The signing key" }).getByRole("button", { name: "Hide it" }).click();
}

async function isNotLedThere(stranger) {
    await api("POST", "/users", { user: { username: NAME, active: true }, password: PASSWORD, isHashed: false });
    const other = await stranger();
    other.mayFail = [isAnswer(403, "GET /api/v1/webhooks")];
    await other.goto(`${url}/det/webhooks`);
    await signIn(other, NAME, PASSWORD);
    await other.getByText("The webhooks could not be read").waitFor();
    check(!await other.getByRole("main").getByRole("button", { name: /webhook|key/i }).count(), "a button that is refused");
    await until(async () => await other.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Webhooks" }).count() === 0, "no link to what is refused");
    check(!other.said.length, other.said.join("\n"));
}

export default async function ({ page, stranger }) {
    const to = await receiver();
    page.mayFail = [isAnswer(400, "POST /api/v1/webhooks"), (r) => r.status() === 400 && /^\/api\/v1\/webhooks\/\d+\/test$/.test(new URL(r.url()).pathname)];
    await makes(page, to.url);
    await tells(page, to);
    await isNotLedThere(stranger);
    await page.getByRole("row", { name: "127.0.0.1" }).getByRole("button", { name: "Delete" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete", exact: true }).click();
    await page.getByText("Nobody is told of anything yet.").waitFor();
    to.close();
}
