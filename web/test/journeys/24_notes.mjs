// Notes are Markdown; what looks like a script in them stays text and fetches nothing; who saved meanwhile is not written over.
import { api, check, create, pictures, until, url } from "./harness.mjs";

const NOTES = `# What was learned
* a **wide** net, see [the other](/det/experiments/1)
* <script>alert(1)</script> <img src=x onerror=alert(2)> <b>raw</b>
* [press](javascript:alert(3)) and [that](//elsewhere.invalid/x) and ![a picture](https://elsewhere.invalid/x.png)

| lr | accuracy |
| -- | -- |
| 0.1 | 0.93 |

\`\`\`
x = 1 < 2
\`\`\`
`;

export default async function ({ page, another }) {
    const id = await create({ name: "noted", entrypoint: ["true"], hyperparameters: {}, searcher: { name: "single", metric: "x", max_length: { batches: 1 } } }, null, false);
    const asked = [];
    page.on("request", (r) => { if (!r.url().startsWith(url)) asked.push(r.url()); });
    await page.goto(`${url}/det/experiments/${id}?tab=notes`);
    await page.getByText("No notes.").waitFor();
    await page.getByRole("button", { name: "Edit notes" }).click();
    const field = page.getByLabel("Notes, in Markdown"), section = page.getByRole("region", { name: "Notes" });
    await field.fill(NOTES);
    await page.reload();
    await until(async () => (await field.inputValue()) === NOTES, "what was typed to be there still");
    await section.getByRole("heading", { name: "What was learned" }).waitFor();
    await pictures(page, "experiment-notes-written");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("button", { name: "Edit notes" }).waitFor();
    await section.getByRole("heading", { name: "What was learned" }).waitFor();
    check((await api("GET", `/experiments/${id}`)).experiment.notes === NOTES, "not what was typed was saved");
    const text = await section.innerText();
    for (const t of ["<script>alert(1)</script>", "<img src=x onerror=alert(2)>", "<b>raw</b>", "x = 1 < 2"]) check(text.includes(t), `no ${t} in ${text}`);
    check(await section.locator("script, img, b, iframe").count() === 0, "a note became an element");
    const links = await section.locator(".notes a").evaluateAll((all) => all.map((a) => a.getAttribute("href")));
    check(links.filter(Boolean).join() === "/det/experiments/1,https://elsewhere.invalid/x.png", `links ${links}`);
    await pictures(page, "experiment-notes-shown");
    const other = await another();
    await other.goto(page.url());
    await other.getByRole("button", { name: "Edit notes" }).click();
    await other.getByLabel("Notes, in Markdown").fill("theirs");
    await api("PATCH", `/experiments/${id}`, { id, notes: "meanwhile" });
    await other.getByRole("button", { name: "Save", exact: true }).click();
    await other.getByText("somebody else has changed them meanwhile").waitFor();
    check((await api("GET", `/experiments/${id}`)).experiment.notes === "meanwhile", "written over without a word");
    await other.getByRole("button", { name: "Save", exact: true }).click();
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.notes === "theirs", "theirs to be there");
    check(!asked.length, `asked elsewhere: ${asked}`);
    await other.context().close();
}
