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
    await other.reload(); // what was typed was begun from the text before theirs, and still is
    const save = other.getByRole("button", { name: "Save", exact: true }), theirs = other.getByRole("region", { name: "Their changes" });
    const now = async () => (await api("GET", `/experiments/${id}`)).experiment.notes;
    await save.click();
    await theirs.filter({ hasText: "+ meanwhile" }).waitFor();
    check(await now() === "meanwhile" && (await theirs.innerText()).includes("- # What was learned"), `written over without a word: ${await theirs.innerText()}`);
    await pictures(other, "experiment-notes-changed");
    await save.click();
    await until(async () => await now() === "theirs", "theirs to be there");
    await other.getByRole("button", { name: "Edit notes" }).click();
    await other.getByLabel("Notes, in Markdown").fill("theirs\nmine");
    await api("PATCH", `/experiments/${id}`, { id, notes: "first\ntheirs" });
    await save.click();
    await other.getByRole("button", { name: "Put theirs into mine" }).click();
    await save.click();
    await until(async () => await now() === "first\ntheirs\nmine", "both to be there");
    check(!asked.length, `asked elsewhere: ${asked}`);
    await other.context().close();
}
