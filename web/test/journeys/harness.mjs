// What journeys share: a signed-in page of a real master in a headless Chromium that notes whatever a reader's console would
// say, axe, pictures in both themes, and the API for what a journey begins with.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { chromium } from "playwright-core";

const require = createRequire(import.meta.url);
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const TOP = new URL("../../../", import.meta.url).pathname;
const LIMIT_MS = 120_000; // for what must come; a busy machine takes its time

export const url = process.env.DET_TEST_URL;
const token = process.env.DET_TEST_TOKEN, password = process.env.DET_TEST_PASSWORD, out = process.env.DET_TEST_OUT;

export function check(isTrue, text) {
    if (!isTrue) throw new Error(text);
}

export async function api(method, path, body) {
    const r = await fetch(`${url}/api/v1${path}`, { method, headers: { Authorization: `Bearer ${token}` }, body: body && JSON.stringify(body) });
    check(r.ok, `${method} ${path}: ${r.status} ${r.ok || await r.text()}`);
    const text = await r.text();
    return text ? JSON.parse(text) : {};
}

/* Submits a configuration (text or object) with an example's files. */
export async function create(config, example, activate = true) {
    const folder = example && join(TOP, "examples", example);
    const file = (name) => ({ path: name, type: 48, mode: 0o100644, uid: 0, gid: 0, mtime: "1700000000", content: readFileSync(join(folder, name)).toString("base64") });
    const text = typeof config === "string" ? config : JSON.stringify(config);
    const r = await api("POST", "/experiments", { config: text, activate, modelDefinition: folder ? readdirSync(folder).map(file) : [] });
    return r.experiment.id;
}

export function exampleConfig(path) {
    return readFileSync(join(TOP, "examples", path), "utf8");
}

/* Asks until the answer is as it should be. */
export async function until(ask, what) {
    for (const end = Date.now() + LIMIT_MS; Date.now() < end;) {
        const got = await ask();
        if (got) return got;
        await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`waited for ${what}`);
}

const routeOf = (r) => `${r.request().method()} ${new URL(r.url()).pathname}`;
/* Who is not signed in asks who they are, or is not let in: an answer, no fault of the page. */
const isSigningIn = (r) => r.status() === 401 && /^(GET \/api\/v1\/me|POST \/api\/v1\/auth\/.+)$/.test(routeOf(r));
/* The master's no to what is being written. */
export const isValidation = (r) => r.status() === 400 && routeOf(r) === "POST /api/v1/experiments" && r.request().postDataJSON().validateOnly === true;
export const isAnswer = (status, route) => (r) => r.status() === status && routeOf(r) === route;

/* Every request that failed is told of, but what the journey expects; the console says no more of them than that. */
function hears(page) {
    page.said = [];
    page.mayFail = []; // what is true of an answer that is expected
    page.maySay = [/^Failed to load resource: the server responded/]; // the answer itself is looked at
    page.on("response", (r) => { if (r.status() >= 400 && ![isSigningIn, ...page.mayFail].some((is) => is(r))) page.said.push(`${r.status()} to ${routeOf(r)}`); });
    page.on("console", (m) => { if (["error", "warning"].includes(m.type()) && !page.maySay.some((is) => is.test(m.text()))) page.said.push(m.text()); });
    page.on("pageerror", (e) => page.said.push(String(e.stack)));
    page.on("dialog", (d) => { page.said.push(`a dialog: ${d.message()}`); void d.dismiss(); });
}

/* A page in a context of its own; `said` is what went wrong on it, by its console and the answers it got. */
async function opened(browser, theme) {
    const context = await browser.newContext({ colorScheme: theme, viewport: { width: 1400, height: 1000 }, timezoneId: process.env.TZ ?? "Asia/Kolkata" });
    const page = await context.newPage();
    page.setDefaultTimeout(LIMIT_MS);
    hears(page);
    return page;
}

export async function signIn(page, name, secret) {
    await page.getByLabel("Username").fill(name);
    await page.getByLabel("Password").fill(secret);
    await page.getByRole("button", { name: "Sign in" }).click();
}

async function signedIn(browser, theme) {
    const page = await opened(browser, theme);
    await page.goto(url);
    await signIn(page, "admin", password);
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
    return page;
}

/* Nothing lies beside the page. */
export async function fitsIn(page, name) {
    const [wide, seen] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
    const who = wide > seen && await page.evaluate((w) => [...document.querySelectorAll("main *, header *")].filter((e) => e.getBoundingClientRect().right > w + 1)
        .slice(0, 5).map((e) => e.outerHTML.slice(0, 120)).join(" | "), seen);
    check(wide <= seen, `${name} is ${wide} pixels wide in ${seen}: ${who}`);
}

/* No violation on the page as it is, and nothing in its console. */
export async function seemly(page) {
    await page.evaluate(AXE);
    const { violations } = await page.evaluate(() => axe.run());
    check(!violations.length, violations.map((v) => `axe ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(" | ")}`).join("\n"));
    check(!page.said.length, `the console says: ${page.said.join("\n")}`);
}

/* What a journey that failed did not come to end: the next find the slots free, the queue at rest and no model. */
async function clears() {
    const { experiments } = await api("GET", "/experiments?archived=true&limit=1000"), { models } = await api("GET", "/models?limit=1000");
    const rests = /^STATE_(PAUSED|COMPLETED|CANCELED|ERROR|DELETED|DELETE_FAILED)$/;
    for (const e of experiments.filter((x) => !rests.test(x.state))) await api("POST", `/experiments/${e.id}/kill`, {});
    for (const m of models) await api("DELETE", `/models/${encodeURIComponent(m.name)}`);
    await until(async () => (await api("GET", "/resource-pools")).resourcePools.every((p) => p.slotsUsed === 0), "the slots to be free");
}

async function travels(browser, name, journey) {
    const begun = Date.now();
    let page;
    try {
        await api("POST", "/users/setting/reset", {}); // what another journey's reader wanted
        page = await signedIn(browser, "light");
        await journey({ page, another: () => signedIn(browser, "dark"), stranger: () => opened(browser, "dark") });
        await seemly(page);
        console.log(`ok   ${name} ${Date.now() - begun} ms`);
        return true;
    } catch (e) {
        console.log(`FAIL ${name}: ${e.stack}\n${page?.said.join("\n") ?? ""}`);
        await (page && picture(page, `${name}-failed`))?.catch((p) => console.log(`no picture of it: ${p.message}`));
        await clears().catch((c) => console.log(`what ${name} left is there still: ${c.message}`));
        return false;
    } finally {
        for (const context of browser.contexts()) await context.close();
    }
}

export async function run(journeys) {
    const browser = await chromium.launch({ executablePath: process.env.DET_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-dev-shm-usage"] });
    let failed = 0;
    try {
        for (const [name, journey] of journeys) if (!await travels(browser, name, journey)) failed++;
    } finally {
        await browser.close();
    }
    return failed;
}

async function picture(page, name) {
    if (!out) return;
    mkdirSync(out, { recursive: true });
    await page.screenshot({ path: join(out, `${name}.png`) });
}

/* The page in both themes, each with axe. */
export async function pictures(page, name) {
    for (const theme of ["light", "dark"]) {
        await page.emulateMedia({ colorScheme: theme });
        await seemly(page);
        await picture(page, `${name}-${theme}`);
    }
    await page.emulateMedia({ colorScheme: "light" });
}
