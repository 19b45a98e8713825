// What is seen of a search is the address: each control of each part is turned, the address says so, and another browser shows all of them as they are.
import { api, check, create, exampleConfig, until, url } from "./harness.mjs";

const NAME = "digits_random", PARTS = ["trials", "scatter", "heat", "importance", "rungs", "checkpoints", "logs", "timeline", "config", "code", "notes"];
/* What is found besides is turned, too. */
const MUST = ["Curves: Metric", "Curves: by", "Curves: log y", "Curves: log x", "Curves: smooth", "Axes", "Group by", "Trials: learning_rate", "Trials: duration", "Trials: Choose trial",
    "Scatter: across", "Scatter: up", "Scatter: colour", "Heat map: across", "Heat map: up", "Heat map: colour",
    "Log of", "Search", "regular expression", "and the lines between", "Levels: warning"];
/* No part of what is seen: done once (a jump to a time), or no colleague's to see. */
const APART = /show the registry's secrets|(^|: )Time$/;

async function aSearch() {
    const { experiments } = await api("GET", `/experiments?name=${NAME}&sortBy=SORT_BY_ID&limit=50`);
    const id = experiments.find((e) => e.name === NAME && e.state === "STATE_COMPLETED")?.id ?? await create(exampleConfig("digits/random.yaml"), "digits");
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_COMPLETED", "the search to end");
    return id;
}

/* Every control of the page, each by what it says and how it stands. */
const controls = (page) => page.evaluate((apart) => {
    const words = (e) => [...(e?.childNodes ?? [])].filter((n) => n.nodeType === Node.TEXT_NODE || n.localName === "span").map((n) => n.textContent).join(" ");
    const said = (e) => (e.getAttribute("aria-label") ?? words(e.closest("label, th button"))).replace(/\d+$/, "").trim();
    const within = (e) => { const g = e.closest("fieldset, [role=group], table, section"); return g?.getAttribute("aria-label") ?? g?.querySelector("legend")?.textContent ?? ""; };
    const stands = (e) => (e.localName === "select" || ["range", "search"].includes(e.type) ? e.value : e.type === "checkbox" ? String(e.checked) : e.closest("th")?.getAttribute("aria-sort") ?? "");
    return [...document.querySelectorAll("main :is(select, input, th button)")].map((e, i) => ({ i, what: [within(e), said(e)].filter(Boolean).join(": "), kind: e.localName === "input" ? e.type : e.localName,
        stands: stands(e), other: e.localName === "select" ? [...e.options].map((o) => o.value).find((v) => v !== e.value) : "" })).filter((c) => !new RegExp(apart).test(c.what));
}, APART.source);

const states = async (page) => (await controls(page)).map((c) => `${c.kind} ${c.stands}`).join("\n");

async function turn(page, c) {
    const it = page.locator("main :is(select, input, th button)").nth(c.i);
    if (c.kind === "select") return it.selectOption(c.other);
    if (c.kind === "range") return it.fill("0.5");
    if (c.kind === "search") return it.fill("loss").then(() => it.press("Enter"));
    return it.evaluate((e) => e.click()); // what lies folded can be turned, too
}

/* Settled: the trials are there, and what is shown of them moves no more. */
async function settled(page) {
    await page.locator(".curve-summary", { hasText: /: [1-9]\d* curves?, [1-9]/ }).waitFor();
    for (let before = null, now = await states(page), same = 0; same < 3; before = now, now = await states(page), same = now === before ? same + 1 : 0) await page.waitForTimeout(100);
}

async function shows(other, page, what) {
    await other.goto(page.url());
    await settled(other);
    await until(async () => await states(other) === await states(page), `another browser to show ${what} as this one does, at ${page.url()}`);
}

export default async function ({ page, another }) {
    const id = await aSearch(), other = await another(), turned = new Set();
    for (const part of PARTS) {
        const at = `${url}/det/experiments/${id}${part === PARTS[0] ? "" : `?tab=${part}`}`; // as the page writes it itself
        await page.goto(at);
        await settled(page);
        for (const c of await controls(page)) {
            if (turned.has(c.what) || (c.kind === "select" && !c.other)) continue; // one of a table's rows stands for them all
            turned.add(c.what);
            await page.goto(at);
            await settled(page);
            const before = page.url();
            await turn(page, c);
            await until(() => page.url() !== before, `${c.what} of ${part} in the address`);
            await until(async () => (await controls(page)).some((n) => n.i === c.i && n.stands !== c.stands), `${c.what} of ${part} to stay as it was turned`);
            await settled(page);
            await shows(other, page, `${c.what} of ${part}`);
        }
    }
    const missed = MUST.filter((m) => ![...turned].some((t) => t === m || t.endsWith(`: ${m}`)));
    check(!missed.length, `not turned: ${missed}; turned: ${[...turned].join(" | ")}`);
    await other.context().close();
}
