// A log of thousands of lines: its end, its beginning, search, a link to a line, ANSI colours; and nothing in a name or line does anything.
import { readFileSync } from "node:fs";
import { check, create, pictures, until, url, api } from "./harness.mjs";

const EVIL = "<img src=x onerror=alert(1)>\u202e\u0007name";
const SCRIPT = String.raw`i=0; while [ $i -lt 2500 ]; do printf '\033[1;31mline %04d\033[0m <script>alert(1)</script>\n' $i; i=$((i+1)); done; echo to the other output >&2; sleep 600`;

const two = (n) => String(n).padStart(2, "0");
/* As its field takes a time of the reader's clock; no seconds are none. */
const local = (d) => `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}${d.getSeconds() ? `:${two(d.getSeconds())}` : ""}`;

/* To a time between others, to one before all, and to one that is not there yet. */
async function jumps(page, trial) {
    const at = async (time) => {
        await page.getByLabel("Time").fill(local(time));
        await page.getByRole("button", { name: "Go there" }).click();
    };
    const answer = await fetch(`${url}/api/v1/trials/${trial}/logs?limit=1&searchText=line%202000`, { headers: { Authorization: `Bearer ${process.env.DET_TEST_TOKEN}` } });
    const { result } = JSON.parse((await answer.text()).split("\n")[0]), second = new Date(Math.floor(Date.parse(result.timestamp) / 1000) * 1000);
    await at(second);
    const marked = page.locator(".log-line.marked");
    await marked.waitFor();
    const [id, time] = [Number(await marked.getAttribute("data-line")), await marked.locator(".log-time").innerText()];
    check(id <= Number(result.id) && local(new Date(time.replace(" ", "T"))) === local(second), `went to line ${id} of ${time}`);
    const later = new Date(second.getTime() + 3_600_000);
    await api("POST", "/task/logs", { logs: [{ taskId: (await api("GET", `/trials/${trial}`)).trial.taskId, timestamp: later.toISOString(), log: "on the second\n" }] });
    await at(later);
    await page.locator(".log-line.marked").getByText("on the second").waitFor();
    await at(new Date(2001, 0, 1));
    await page.getByText("The log begins here.").waitFor();
    await at(new Date(Date.now() + 86_400_000));
    await page.getByText("Nothing that late").waitFor();
}

const says = async (trial, log, more = {}) => api("POST", "/task/logs", { logs: [{ taskId: (await api("GET", `/trials/${trial}`)).trial.taskId, timestamp: new Date().toISOString(), log: `${log}\n`, ...more }] });

/* What is said while the reader is at the end is there without being asked for, at the time of the reader's clock. */
async function follows(page, trial) {
    await page.goto(`${url}/det/trials/${trial}/logs`);
    await page.getByRole("button", { name: "Following" }).waitFor();
    await page.getByRole("log").getByText("line 2499").waitFor();
    const at = new Date(Date.now() + 3_600_001);
    await says(trial, "said while following", { timestamp: at.toISOString() });
    const line = page.locator(".log-line", { hasText: "said while following" });
    await line.waitFor();
    await until(() => line.evaluate((l) => l.getBoundingClientRect().bottom <= l.closest("[role=log]").getBoundingClientRect().bottom + 2), "the new line to be in sight");
    const time = await line.locator(".log-time").innerText(), there = new Date(at.getTime() + 5.5 * 3_600_000).toISOString(); // Calcutta's clock
    check(time.slice(0, 19) === there.replace("T", " ").slice(0, 19), `${time} is not ${there}`);
    await behindAnother(page, trial);
}

/* A tab that nobody sees lets its stream go; seen again, what was said meanwhile is there. */
async function behindAnother(page, trial) {
    const isFollowing = (r) => /\/logs\?.*follow=true/.test(r.url()), shows = (state) => page.evaluate((s) => {
        Object.defineProperty(document, "visibilityState", { value: s, configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
    }, state);
    await Promise.all([page.waitForEvent("requestfailed", isFollowing), shows("hidden")]);
    const asked = [], note = (r) => asked.push(r.url());
    page.on("request", note);
    await says(trial, "said behind its back");
    await until(async () => (await (await fetch(`${url}/api/v1/trials/${trial}/logs?limit=1&searchText=behind%20its`, { headers: { Authorization: `Bearer ${process.env.DET_TEST_TOKEN}` } })).text()).includes("behind its back"), "the master to have the line");
    check(await page.getByText("said behind its back").count() === 0 && asked.length === 0, `a hidden tab asks for ${asked}`);
    page.off("request", note);
    await Promise.all([page.waitForRequest(isFollowing), shows("visible")]);
    await page.getByRole("log").getByText("said behind its back").waitFor();
    await says(trial, "said to its face");
    await page.getByRole("log").getByText("said to its face").waitFor();
}

/* By level and by rank: only what has them, and the address says so. */
async function filters(page, trial) {
    await says(trial, "rank three failed", { level: "LOG_LEVEL_ERROR", rankId: 3 });
    await says(trial, "rank five is well", { level: "LOG_LEVEL_WARNING", rankId: 5 });
    await page.goto(`${url}/det/trials/${trial}/logs`);
    const lines = page.locator(".log-line"), one = (text) => until(async () => (await lines.count()) === 1 && (await lines.innerText()).includes(text), `the one line: ${text}`);
    await page.getByLabel("error", { exact: true }).check();
    await one("rank three failed");
    check(new URL(page.url()).searchParams.get("level") === "ERROR", page.url());
    await page.getByLabel("error", { exact: true }).uncheck();
    await page.getByText(/^Ranks: /).click();
    await page.getByRole("group", { name: "Ranks" }).getByLabel("5").check();
    await page.keyboard.press("Escape");
    await one("rank five is well");
    await pictures(page, "logs-rank");
    await page.goto(`${url}/det/experiments/1/trials/${trial}/logs?level=LOG_LEVEL_ERROR&rankId=3`); // as links of old have them
    await one("rank three failed");
}

/* Lines that match among the others: marked in the log and beside its scroll bar, and the way from one to the next, beyond what is read. */
async function between(page, trial) {
    await page.goto(`${url}/det/trials/${trial}/logs?search=line+(0777|24.0)&regex=1`);
    const lines = page.locator(".log-line"), hits = page.locator(".log-line.hit"), marked = page.locator(".log-line.marked");
    await until(async () => await lines.count() === 11, "what matches alone");
    await page.getByLabel("and the lines between").check();
    await until(async () => await hits.count() === 10 && await lines.count() > 100, "ten of them among the newest lines");
    check((await hits.allInnerTexts()).every((t) => /line 24.0/.test(t)), `${await hits.allInnerTexts()}`);
    await page.getByText(/lines here, 10 of them match$/).waitFor();
    const tops = await page.locator(".log-hits i").evaluateAll((all) => all.map((i) => parseFloat(i.style.top)));
    check(tops.length === 10 && tops.every((t, i) => t > 0 && t < 100 && (!i || t > tops[i - 1])), `beside the scroll bar at ${tops}`);
    for (const text of ["line 2490", "line 2480"]) {
        await page.getByRole("button", { name: "Match before" }).click();
        await marked.getByText(text).waitFor();
    }
    await pictures(page, "logs-between");
    await page.goto(page.url().replace(/#.*/, `#l=${await lines.filter({ hasText: "line 2400" }).getAttribute("data-line")}`));
    await page.reload();
    await marked.getByText("line 2400").waitFor();
    await page.getByRole("button", { name: "Match before" }).click();
    await marked.getByText("line 0777").waitFor(); // which was not read
    await until(() => marked.evaluate((m) => { const r = m.getBoundingClientRect(); return r.top > 0 && r.bottom < innerHeight; }), "it to be in sight");
    await page.getByRole("button", { name: "Match before" }).click();
    await page.getByText("No line before it matches.").waitFor();
}

/* From a line at the beginning down to the end, all of it in between; and all of it as a file. */
async function reads(page, trial, first) {
    await page.goto(`${url}/det/trials/${trial}/logs#l=${first}`);
    const log = page.getByRole("log");
    await log.getByText("line 0000").waitFor();
    check(await log.getByText("line 2499").count() === 0, "more is read than is in sight");
    await until(async () => {
        await log.evaluate((b) => { b.scrollTop = b.scrollHeight; });
        return await log.getByText("line 2499").count() > 0;
    }, "the end");
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Download" }).click()]);
    const all = readFileSync(await file.path(), "utf8").split("\n").filter((l) => /line \d{4} <script>/.test(l));
    check(all.length === 2500 && all.every((l, i) => l.includes(`line ${String(i).padStart(4, "0")} `)), `${all.length} lines in the file`);
}

export default async function ({ page }) {
    const id = await create({ name: EVIL, description: EVIL, entrypoint: ["sh", "-c", SCRIPT], max_restarts: 0, hyperparameters: {},
        searcher: { name: "single", metric: "x", max_length: { batches: 1 } } });
    const trial = (await until(async () => (await api("GET", `/experiments/${id}/trials`)).trials[0], "the trial")).id;
    await page.goto(`${url}/det/experiments/${id}`);
    await page.getByRole("heading", { name: /<img src=x onerror=alert\(1\)>/ }).waitFor();
    check(await page.locator("main img:not([role])").count() === 0, "a name became an element");
    await page.goto(`${url}/det/trials/${trial}/logs`);
    const log = page.getByRole("log"), lines = page.locator(".log-line");
    await log.getByText("line 2499").waitFor();
    check(await log.locator(".ansi-f1.ansi-b").count() > 0, "no colour");
    check(await page.locator("main script").count() === 0, "a line became an element");
    await pictures(page, "logs");
    await until(async () => {
        await log.evaluate((b) => { b.scrollTop = 0; });
        return await page.getByText("The log begins here.").count() > 0;
    }, "the beginning");
    await log.getByText("line 0000").waitFor();
    const first = await lines.filter({ hasText: "line 0000" }).getAttribute("data-line");
    await page.getByLabel("Search").fill("line 17[0-9][0-9]");
    await page.getByLabel("regular expression").check();
    await until(async () => (await lines.count()) === 100, "the hundred lines that fit");
    await lines.nth(50).locator("a").click();
    const chosen = /#l=(\d+)$/.exec(page.url())[1];
    await page.goto("about:blank");
    await page.goto(`${url}/det/trials/${trial}/logs#l=${chosen}`);
    const marked = page.locator(`.log-line.marked[data-line="${chosen}"]`);
    await marked.waitFor();
    check((await marked.innerText()).includes("line 1750"), await marked.innerText());
    await until(() => marked.evaluate((m) => { const r = m.getBoundingClientRect(); return r.top > 0 && r.bottom < innerHeight; }), "the line to be in sight");
    await page.goto(`${url}/det/trials/${trial}/logs`);
    await jumps(page, trial);
    await page.getByText(/^Outputs: /).click();
    await page.getByRole("group", { name: "Outputs" }).getByLabel("stderr").check();
    await page.keyboard.press("Escape");
    await until(async () => (await lines.count()) === 1 && (await lines.innerText()).includes("to the other output"), "the one line of the other output");
    check(new URL(page.url()).searchParams.get("out") === "stderr", page.url());
    await pictures(page, "logs-output");
    await follows(page, trial);
    await filters(page, trial);
    await reads(page, trial, first);
    await between(page, trial);
    await api("POST", `/experiments/${id}/kill`, {});
}
