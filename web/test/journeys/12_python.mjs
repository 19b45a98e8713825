// A trial in Python shows what one in C shows: its curve, its log, its timeline; its checkpoint is downloaded and opens in PyTorch.
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { api, check, create, exampleConfig, pictures, until, url } from "./harness.mjs";

const OPENS = "import sys, torch; d = torch.load(sys.argv[1], weights_only=False); print(sum(v.numel() for m in d['models_state_dict'] for v in m.values()))";

async function opens(page, uuid) {
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("row", { name: uuid }).getByRole("button", { name: "Download" }).click()]);
    const folder = mkdtempSync(join(tmpdir(), "det-checkpoint-"));
    try {
        execFileSync("tar", ["xzf", await file.path(), "-C", folder]);
        const found = execFileSync("find", [folder, "-name", "state_dict.pth"], { encoding: "utf8" }).trim();
        check(Number(execFileSync("/usr/bin/python3", ["-c", OPENS, found], { encoding: "utf8" })) > 0, "no weights");
    } finally {
        rmSync(folder, { recursive: true });
    }
}

export default async function ({ page }) {
    const id = await create(exampleConfig("python/first/const.yaml"), "python/first");
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_COMPLETED", "it to end");
    const trial = (await api("GET", `/experiments/${id}/trials`)).trials[0].id, c = (await api("GET", `/trials/${trial}`)).trial.bestCheckpoint; // others may be collected at any moment
    await page.goto(`${url}/det/trials/${trial}`);
    await page.locator(".curve-summary", { hasText: /[1-9]\d* points?/ }).waitFor();
    await page.getByRole("region", { name: "Timeline" }).getByText(/[1-9]\d* events/).waitFor();
    await opens(page, c.uuid);
    await pictures(page, "trial-python");
    await page.getByRole("link", { name: "Logs" }).click();
    await page.locator(".log-line").first().waitFor();
}
