// A log of thousands of lines: its end, its beginning, search, a link to a line, ANSI colours; and nothing in a name or line does anything.
import { check, create, pictures, until, url, api } from "./harness.mjs";

const EVIL = "<img src=x onerror=alert(1)>\u202e\u0007name";
const SCRIPT = String.raw`i=0; while [ $i -lt 2500 ]; do printf '\033[1;31mline %04d\033[0m <script>alert(1)</script>\n' $i; i=$((i+1)); done; sleep 600`;

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
    await api("POST", `/experiments/${id}/kill`, {});
}
