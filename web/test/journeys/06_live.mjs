// Curves grow while a trial trains; a pause shows; activated again, the line goes on.
import { api, check, create, exampleConfig, pictures, until, url } from "./harness.mjs";

/* Of what it has been told the page asks again for the last point alone. */
async function asksForNewOnes(page) {
    const asked = [];
    page.on("request", (r) => { const u = new URL(r.url()); if (u.pathname === "/api/v1/trials/time-series") asked.push(Number(u.searchParams.get("startBatches"))); });
    await until(() => asked.filter((from, i) => from > 0 && from > (asked[i - 1] ?? 0)).length > 2, "curves that are asked for from where they end");
}

export default async function ({ page }) {
    const config = exampleConfig("digits/const.yaml").replace("epochs: 12", "epochs: 40000").replace("epochs: 2\n", "epochs: 3\n").replace("scheduling_unit: 45", "scheduling_unit: 15");
    const id = await create(config, "digits");
    const points = async () => Number(/(\d+) points?/.exec(await page.locator(".curve-summary").innerText())?.[1] ?? 0);
    await page.goto(`${url}/det/experiments/${id}`);
    const first = await until(async () => (await points()) >= 2 && points(), "points of the curve");
    await until(async () => (await points()) > first, "more points without loading again");
    await asksForNewOnes(page);
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
