// A halving search: each rung says who went on and who was stopped as the search has it, and why in the searcher's own words.
import { readFileSync } from "node:fs";
import { api, check, create, pictures, until, url } from "./harness.mjs";

const CONFIG = { name: "halving", entrypoint: "model_def:DigitsTrial", scheduling_unit: 2, checkpoint_policy: "none", reproducibility: { experiment_seed: 7 },
    hyperparameters: { global_batch_size: 16, dropout: 0.1, learning_rate: { type: "log", base: 10, minval: -3, maxval: -1 } },
    searcher: { name: "async_halving", metric: "accuracy", smaller_is_better: false, num_rungs: 2, divisor: 2, max_trials: 3, max_concurrent_trials: 2, max_length: { batches: 8 } } };

export default async function ({ page }) {
    const id = await create(CONFIG, "digits");
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_COMPLETED", "the search to end");
    const { brackets: [{ rungs: [low, top] }] } = await api("GET", `/experiments/${id}/rungs`);
    await page.goto(`${url}/det/experiments/${id}?tab=rungs`);
    const row = (rung, trial) => page.getByRole("table", { name: `Trials of rung ${rung} of` }).locator(`tr[data-row="${trial}"]`);
    const words = { WENT_ON: "↑ went on", STOPPED: "■ stopped", TOP: "★ at the top" };
    for (const r of [low, top]) for (const t of r.trials) await row(r.rung, t.trialId).getByText(words[t.state]).waitFor();
    const stopped = low.trials.find((t) => t.state === "STOPPED"), on = low.trials.find((t) => t.state === "WENT_ON");
    check(stopped && on, JSON.stringify(low));
    const why = await api("GET", `/trials/${stopped.trialId}/why`);
    await row(low.rung, stopped.trialId).getByRole("button", { name: /^Why/ }).click();
    await page.getByRole("status").filter({ hasText: `Trial ${stopped.trialId}: ${why.text}` }).waitFor();
    await row(low.rung, on.trialId).getByRole("button", { name: /^Why/ }).click();
    await page.getByRole("status").filter({ hasText: /it stands at place \d of the 3 that have come here; about one in 2 goes on.* Now: it reached the end of its search/ }).waitFor();
    const picture = page.getByRole("group", { name: "The rungs" });
    await picture.getByRole("img", { name: `rung ${low.rung}: ${low.validated} validated, ${low.wentOn} went on` }).waitFor();
    await picture.focus();
    await page.keyboard.press("ArrowUp");
    const [, pointed] = /^trial (\d+) /.exec(await page.getByRole("status").filter({ hasText: /^trial \d+ · / }).innerText());
    await page.locator(`tr.hover[data-row="${pointed}"]`).first().waitFor();
    await page.keyboard.press("Enter");
    await until(() => new URL(page.url()).searchParams.get("t") === pointed, "the trial that was pressed in the address");
    await page.keyboard.press("Enter");
    await until(() => !new URL(page.url()).searchParams.has("t"), "none in the address");
    await pictures(page, "experiment-rungs");
    const [file] = await Promise.all([page.waitForEvent("download"), page.locator("main").getByTitle("All trials of all rungs").click()]);
    const [head, ...rows] = readFileSync(await file.path(), "utf8").trim().split("\r\n").map((l) => l.split(","));
    check(head.join() === "bracket,rung,batches,trial,place,accuracy,what became of it" && rows.length === low.trials.length + top.trials.length, `${head}: ${rows.length} rows`);
    check(rows.some((r) => r[1] === String(low.rung) && r[3] === String(stopped.trialId) && r[6] === "stopped") && rows.some((r) => r[3] === String(on.trialId) && r[6] === "went on"), rows.join(" | "));
}
