// A job is dragged to the head of its queue, another moved by keys: both stay there. Other pools have no grips.
import { api, check, create, pictures, until, url } from "./harness.mjs";

const config = (name, pool) => ({ name, entrypoint: ["true"], max_restarts: 0, hyperparameters: {}, resources: { slots_per_trial: 1, resource_pool: pool },
    searcher: { name: "single", metric: "x", max_length: { batches: 1 } } });

export default async function ({ page }) {
    const ids = [];
    for (const name of ["first", "second", "third"]) ids.push(String(await create(config(name, "line"), null)));
    const [a, b, c] = ids, other = String(await create(config("elsewhere", "default"), null, false));
    await page.goto(`${url}/det/clusters`);
    const row = (id) => page.locator(`tr[data-job="${id}"]`), grip = (id) => row(id).getByRole("button", { name: /^Move / });
    const isOrder = (...order) => until(async () => (await page.locator("tr[data-job]").evaluateAll((all) => all.map((r) => r.dataset.job))).filter((id) => ids.includes(id)).join() === order.join(), `the order ${order}`);
    await isOrder(a, b, c);
    await grip(c).scrollIntoViewIfNeeded(); // other journeys' jobs may stand above
    const from = await grip(c).boundingBox(), to = await row(a).boundingBox();
    await page.mouse.move(from.x + from.width / 2, from.y + from.height / 2);
    await page.mouse.down();
    await page.mouse.move(to.x + 30, to.y + to.height / 2, { steps: 4 });
    await page.locator("tr.drop-above").waitFor();
    await pictures(page, "queue-drag");
    await page.mouse.up();
    await page.getByText(`third #${c} is ahead of first #${a} now.`).waitFor();
    await isOrder(c, a, b);
    await grip(a).focus();
    await page.keyboard.press("ArrowDown");
    await page.getByText(`first #${a} is behind second #${b} now.`).waitFor();
    await isOrder(c, b, a);
    await until(() => page.evaluate((id) => document.activeElement.closest("tr")?.dataset.job === id, a), "the grip to keep the focus");
    await page.keyboard.press("ArrowDown"); // it is the last
    await page.reload();
    await isOrder(c, b, a);
    await row(other).getByText("paused").waitFor(); // it keeps a place and is not waiting
    check((await row(other).locator("td[data-label='slots'], td[data-label='jobs ahead']").allInnerTexts()).join("") === "", "slots and jobs ahead of what is paused");
    check(await row(other).count() === 1 && await grip(other).count() === 0, "a grip where the pool keeps no order");
    const stored = (await api("GET", "/job-queues-v2?resourcePool=line")).jobs.map((j) => j.full.entityId);
    check(stored.join() === [c, b, a].join(), `the master has ${stored}`);
    for (const id of [...ids, other]) await api("POST", `/experiments/${id}/kill`, {});
}
