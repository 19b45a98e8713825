// Each page on a small phone and on a large screen, in both themes: nothing lies beside the page, nothing but tables and charts scrolls.
import { api, check, create, exampleConfig, fitsIn, pictures, until, url } from "./harness.mjs";

/* What lies beside experiments, with rows in its tables: on a small phone. */
const OTHERS = { users: "/det/users", roles: "/det/users?tab=roles", tokens: "/det/tokens", models: "/det/models", model: "/det/models/small%20model", version: "/det/models/small%20model/versions/1",
    workspaces: "/det/workspaces", workspace: "/det/workspaces/1", project: "/det/projects/1", templates: "/det/templates", master: "/det/master", audit: "/det/master?tab=audit", log: "/det/master?tab=log", use: "/det/clusters/historical-usage" };
const SIZES = { small: { width: 320, height: 640 }, large: { width: 3840, height: 2160 } };

/* A row is a card that is seen whole, whose cells say what they are, and as high as the list takes it to be. */
async function areCards(page, name) {
    if (!["experiments", "experiment", "cluster", "users", "models", "workspaces", "audit", "use"].includes(name)) return;
    await page.locator("table.cards tbody tr").first().waitFor();
    const wrong = await page.evaluate(() => [...document.querySelectorAll("table.cards")].flatMap((t) => {
        const box = t.closest(".wide, .list-box"), cards = [...t.querySelectorAll("tbody:not(.gap) > tr")].map((r) => r.getBoundingClientRect());
        const overlap = cards.some((c, i) => i > 0 && c.top < cards[i - 1].bottom - 1), cut = cards.some((c) => c.right > box.getBoundingClientRect().right + 1);
        return box.scrollWidth > box.clientWidth || overlap || cut ? [`${t.ariaLabel}: ${box.scrollWidth} in ${box.clientWidth}`] : [];
    }));
    check(!wrong.length, `${name}: ${wrong}`);
    const labels = await page.locator("table.cards tbody td[data-label]").evaluateAll((all) => all.map((c) => getComputedStyle(c, "::before").content));
    check(labels.every((l) => l.length > 2), `${name}: cells that do not say what they are`);
    const low = await page.locator("table.cards tbody td[data-label]").evaluateAll((all) => all.filter((c) => !c.matches(":empty") && c.getBoundingClientRect().height < 18).map((c) => c.dataset.label));
    check(!low.length, `${name}: no room for the names of ${low}`);
    await page.evaluate(() => document.querySelector("table.cards").scrollIntoView());
    await pictures(page, `size-small-${name}-cards`);
}

/* What is no page lies folded until it is asked for; on a large screen all of it is there. */
async function folds(page) {
    const more = page.getByRole("button", { name: "More" }), out = page.getByRole("button", { name: "Sign out" });
    await page.setViewportSize(SIZES.large);
    await out.waitFor();
    check(await more.count() === 0, "a button to unfold what is not folded");
    await page.setViewportSize(SIZES.small);
    await more.waitFor();
    const high = await page.locator("header.side").evaluate((e) => e.getBoundingClientRect().height);
    check(await out.count() === 0 && high < 110, `the head takes ${high} pixels of ${SIZES.small.height}`);
    await more.click();
    await out.waitFor();
    await fitsIn(page, "what was folded");
    await pictures(page, "size-small-more");
    await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Cluster" }).click();
    await page.getByRole("heading", { name: "Cluster" }).waitFor();
    await out.waitFor({ state: "detached" });
}

export default async function ({ page }) {
    const id = await create(exampleConfig("digits/const.yaml").replace("epochs: 12", "epochs: 4").replace("digits_const", "a_name_without_any_place_to_break_it_in_two"), "digits");
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_COMPLETED", "it to end");
    await create({ name: "waits", entrypoint: ["true"], hyperparameters: {}, searcher: { name: "single", metric: "x", max_length: { batches: 1 } } }, null, false);
    const trial = (await api("GET", `/experiments/${id}/trials`)).trials[0].id;
    const pages = { experiments: "/det/experiments", experiment: `/det/experiments/${id}`, config: `/det/experiments/${id}?tab=config`, trial: `/det/trials/${trial}`,
        logs: `/det/trials/${trial}/logs`, cluster: "/det/clusters", create: "/det/experiments/new", compare: `/det/compare?t=${trial}` };
    await folds(page);
    for (const [size, viewport] of Object.entries(SIZES)) {
        await page.setViewportSize(viewport);
        for (const [name, address] of Object.entries(pages)) {
            await page.goto(url + address);
            await page.getByRole("heading", { level: 1 }).first().waitFor();
            await fitsIn(page, `${name} ${size}`);
            await pictures(page, `size-${size}-${name}`);
            if (size === "small") await areCards(page, name);
        }
    }
    const { checkpoints } = await api("GET", `/trials/${trial}/checkpoints`);
    await api("POST", "/models", { name: "small model", description: "a_description_without_any_place_to_break_it_in_two", labels: ["l".repeat(60)] });
    await api("POST", "/models/small%20model/versions", { checkpointUuid: checkpoints.find((c) => c.state === "STATE_COMPLETED").uuid });
    await page.setViewportSize(SIZES.small);
    for (const [name, address] of Object.entries(OTHERS)) {
        await page.goto(url + address);
        await page.locator("main h1").first().waitFor();
        await page.getByText(/^(Loading|Asking)…$/).first().waitFor({ state: "detached" });
        await areCards(page, name);
        await fitsIn(page, `${name} small`);
        await pictures(page, `size-small-${name}`);
    }
    await api("DELETE", "/models/small%20model");
}
