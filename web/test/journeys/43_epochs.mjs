// A trial in C whose configuration does not say how long an epoch is: its loop does, and the curves are drawn by epochs.
import { api, check, create, exampleConfig, until, url } from "./harness.mjs";

export default async function ({ page }) {
    const id = await create(exampleConfig("digits/const.yaml").replace("epochs: 12", "epochs: 4"), "digits");
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_COMPLETED", "it to end");
    const { trials: [trial] } = await api("GET", `/experiments/${id}/trials`);
    check(trial.epochLength === trial.totalBatchesProcessed / 4, `an epoch of ${trial.epochLength} batches, of ${trial.totalBatchesProcessed} in four`);
    await page.goto(`${url}/det/experiments/${id}?x=epochs`);
    await page.getByText(/1 curve, [1-9]\d* points/).waitFor();
}
