// A log of thousands of lines: its end, its beginning, search, a link to a line, ANSI colours; and nothing in a name or line does anything.
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
    await api("POST", `/experiments/${id}/kill`, {});
}
