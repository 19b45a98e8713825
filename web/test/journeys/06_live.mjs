// Curves grow while a trial trains; a pause shows; activated again, the line goes on.
import { readFileSync } from "node:fs";
import { api, check, create, exampleConfig, pictures, until, url } from "./harness.mjs";

/* Of what it has been told the page asks again for the last point alone. */
async function asksForNewOnes(page) {
    const asked = [];
    page.on("request", (r) => { const u = new URL(r.url()); if (u.pathname === "/api/v1/trials/time-series") asked.push(Number(u.searchParams.get("startBatches"))); });
    await until(() => asked.filter((from, i) => from > 0 && from > (asked[i - 1] ?? 0)).length > 2, "curves that are asked for from where they end");
}

/* The texts of the curves' axes, as their file has them. */
async function axes(page) {
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("region", { name: "Curves" }).getByRole("button", { name: "SVG" }).dispatchEvent("click")]);
    return page.evaluate((svg) => [...new DOMParser().parseFromString(svg, "image/svg+xml").querySelectorAll("text")].map((t) => t.textContent), readFileSync(await file.path(), "utf8"));
}

/* Who looks at a part goes on looking at it while points come. */
async function staysZoomed(page) {
    const over = await page.locator(".u-over").boundingBox(), at = () => new URL(page.url()).searchParams.get("z"), asked = () => page.waitForResponse((r) => new URL(r.url()).pathname === "/api/v1/trials/time-series");
    await page.mouse.move(over.x + over.width / 4, over.y + 40);
    await page.mouse.down();
    await page.mouse.move(over.x + over.width / 2, over.y + 40, { steps: 4 });
    await page.mouse.up();
    const zoom = await until(() => at(), "a zoom in the address"), [lo, hi] = zoom.split("..").map(Number);
    await asked();
    const seen = (texts) => texts.map(Number).filter((n) => n >= lo && n <= hi && n > 1).join(); // batches; a loss is less
    const before = seen(await axes(page));
    for (let i = 0; i < 3; i++) await asked();
    const after = seen(await axes(page));
    check(at() === zoom && before !== "" && after === before, `zoomed to ${zoom}, ${before}; after more points ${at()}, ${after}`);
    await page.getByRole("button", { name: "Whole range" }).click();
    await until(() => !at(), "the whole range");
}

export default async function ({ page }) {
    const config = exampleConfig("digits/const.yaml").replace("epochs: 12", "epochs: 40000").replace("epochs: 2\n", "epochs: 3\n").replace("scheduling_unit: 45", "scheduling_unit: 15");
    const id = await create(config, "digits");
    const points = async () => Number(/(\d+) points?/.exec(await page.locator(".curve-summary").innerText())?.[1] ?? 0);
    await page.goto(`${url}/det/experiments/${id}`);
    const first = await until(async () => (await points()) >= 2 && points(), "points of the curve");
    await until(async () => (await points()) > first, "more points without loading again");
    await asksForNewOnes(page);
    await staysZoomed(page);
    await pictures(page, "experiment-live");
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Activate" }).waitFor();
    await page.locator(".head .state", { hasText: "paused" }).waitFor();
    await until(async () => (await api("GET", `/experiments/${id}/trials`)).trials[0].state === "STATE_PAUSED", "the trial to have stopped");
    const held = await until(async () => {
        const n = await points();
        await page.reload();
        await page.locator(".curve-summary", { hasText: /\d+ points/ }).waitFor();
        return (await points()) === n && n > 0 && n;
    }, "a curve that rests");
    await page.getByRole("button", { name: "Activate" }).click();
    await page.locator(".head .state", { hasText: "running" }).waitFor();
    await until(async () => (await points()) > held, "the line to go on");
    await page.getByRole("button", { name: "Kill" }).click();
    const dialog = page.getByRole("dialog");
    check((await dialog.innerText()).includes(`det experiment kill ${id}`), "the dialog names no command");
    await dialog.getByRole("button", { name: "Kill" }).click();
    await page.locator(".head .state", { hasText: "canceled" }).waitFor();
}
