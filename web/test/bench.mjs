// node bench.mjs PART [ARG]: the figures of `bench/run web` (bench/web.py), on the master of $DET_TEST_URL.
//   list          bundle, first content, scrolling      curves EXPERIMENT     drawing 100,000 points
//   logs TRIAL    to a time among many lines            heap                  an hour of updates
//   record EXPERIMENT      what an open page asks, on standard output         replay FILE    as a hundred pages ask it
import { readFileSync, readdirSync } from "node:fs";
import { Agent, get } from "node:http";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";

const url = process.env.DET_TEST_URL, ASSETS = new URL("../dist/assets/", import.meta.url).pathname;
const headers = { Authorization: `Bearer ${process.env.DET_TEST_TOKEN}` };
const ROUNDS = 7, RECORD_MS = 10_000, PAGES = 100;
const emit = (figure, value, unit) => console.log(JSON.stringify({ bench: "web", figure, value: Math.round(value * 100) / 100, unit, peer: null, peer_value: null, ratio: null }));
const say = (text) => console.error(text);
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const median = (all) => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)];
const kb = (names) => names.reduce((n, f) => n + gzipSync(readFileSync(ASSETS + f)).length, 0) / 1024;

async function api(method, path, body) {
    const r = await fetch(`${url}/api/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
    if (!r.ok) throw new Error(`${method} ${path}: ${r.status} ${await r.text()}`);
    return await r.json();
}

async function signIn(page) {
    await page.goto(url);
    await page.getByLabel("Username").fill("admin");
    await page.getByLabel("Password").fill(process.env.DET_TEST_PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Experiments" }).waitFor();
}

function tellFrames(what, at) {
    const gaps = at.slice(1).map((t, i) => t - at[i]).sort((a, b) => a - b);
    say(`${what}: ${gaps.length} frames, half within ${median(gaps)?.toFixed(1)} ms, 95 % within ${gaps[Math.floor(gaps.length * 0.95)]?.toFixed(1)}, the longest ${gaps.at(-1)?.toFixed(1)}`);
    return gaps.length * 1000 / (at.at(-1) - at[0]);
}

/* ---- the list ---- */

/* Begins before the page's own code: the frame at which the first row of the list is in the document. */
function watch() {
    const seen = (t) => (document.querySelector("main a[href*='/experiments/']") ? (window.firstRow = t) : requestAnimationFrame(seen));
    requestAnimationFrame(seen);
}

/* Scrolls the tallest box by 400 pixels a frame for 5 s: the time of each frame, and in how many a row was there in the middle of the box. */
function scroll() {
    const boxes = [...document.querySelectorAll("*")].filter((e) => e.scrollHeight > e.clientHeight + 1000 && /auto|scroll/.test(getComputedStyle(e).overflowY));
    const box = boxes.sort((a, b) => b.scrollHeight - a.scrollHeight)[0] ?? document.scrollingElement, r = box.getBoundingClientRect();
    return new Promise((done) => {
        const at = [];
        let filled = 0;
        const frame = (t) => {
            at.push(t);
            filled += document.elementFromPoint(r.left + r.width / 2, r.top + r.height / 2)?.closest("tr, [role=row]") ? 1 : 0;
            box.scrollTop += 400;
            if (t - at[0] < 5000) requestAnimationFrame(frame);
            else done({ at, filled });
        };
        requestAnimationFrame(frame);
    });
}

async function list(page) {
    await page.addInitScript(watch);
    await signIn(page);
    await page.waitForFunction(() => window.firstRow);
    const used = await page.evaluate(() => performance.getEntriesByType("resource").map((r) => r.name).filter((n) => /\.(js|css)$/.test(n)));
    emit("bundle_gzip_kb", kb(used.map((n) => n.split("/").pop())), "KB");
    emit("bundle_gzip_kb_all", kb(readdirSync(ASSETS).filter((f) => /\.(js|css)$/.test(f))), "KB");
    const waits = [];
    for (let i = 0; i < ROUNDS; i++) {
        await page.reload();
        await page.waitForFunction(() => window.firstRow);
        waits.push(await page.evaluate(() => window.firstRow));
    }
    say(`first content: ${waits.map((w) => w.toFixed(0)).join(", ")} ms`);
    emit("first_content_ms", median(waits), "ms");
    const { at, filled } = await page.evaluate(scroll);
    emit("list_100k_fps", tellFrames("the list", at), "frames/s");
    emit("list_100k_filled", filled / at.length, "of the frames");
}

/* ---- curves ---- */

/* From a press until the frame after the one that it changed. */
function redraw(label) {
    const box = [...document.querySelectorAll("label")].find((l) => l.textContent.trim() === label).querySelector("input");
    return new Promise((done) => {
        const begin = performance.now();
        box.click();
        requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - begin)));
    });
}

/* The frames of 3 s, while the pointer goes over the curves. */
const frames = () => new Promise((done) => {
    const at = [], frame = (t) => { at.push(t); if (t - at[0] < 3000) requestAnimationFrame(frame); else done(at); };
    requestAnimationFrame(frame);
});

async function curves(page, id) {
    await signIn(page);
    await page.goto(`${url}/det/experiments/${id}?m=training.loss`);
    const summary = page.locator(".curve-summary", { hasText: /100[, ]?000 points/ });
    await summary.waitFor();
    say(await summary.innerText());
    const waits = [];
    for (let i = 0; i < 2 * ROUNDS; i++) {
        waits.push(await page.evaluate(redraw, "log y"));
        await sleep(300);
    }
    say(`a drawing: ${waits.map((w) => w.toFixed(0)).join(", ")} ms`);
    emit("curves_100k_points_ms", median(waits), "ms");
    const r = await page.locator(".chart-box").first().boundingBox(), moving = page.evaluate(frames), end = Date.now() + 3000;
    for (let i = 0; Date.now() < end; i++) await page.mouse.move(r.x + 80 + (i * 7) % (r.width - 100), r.y + 20 + (i * 3) % (r.height - 60));
    emit("curves_100k_pointer_fps", tellFrames("the pointer over curves", await moving), "frames/s");
}

/* ---- logs ---- */

const two = (n) => String(n).padStart(2, "0");
const local = (d) => `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}`;

/* From the press until the line is in the document and a frame has been drawn with it. */
function go() {
    const was = document.querySelector(".log-line.marked")?.dataset.line;
    return new Promise((done) => {
        const begin = performance.now();
        [...document.querySelectorAll("button")].find((b) => b.textContent === "Go there").click();
        const look = () => {
            const now = document.querySelector(".log-line.marked")?.dataset.line;
            if (now && now !== was) requestAnimationFrame(() => done(performance.now() - begin));
            else requestAnimationFrame(look);
        };
        requestAnimationFrame(look);
    });
}

async function logs(page, trial) {
    await signIn(page);
    await page.goto(`${url}/det/trials/${trial}/logs`);
    await page.locator(".log-line").first().waitFor();
    const ask = async (order) => JSON.parse((await (await fetch(`${url}/api/v1/trials/${trial}/logs?limit=1&orderBy=ORDER_BY_${order}`, { headers })).text()).split("\n")[0]).result;
    const [from, to] = [Date.parse((await ask("ASC")).timestamp), Date.parse((await ask("DESC")).timestamp)], waits = [];
    for (let i = 0; i < 2 * ROUNDS; i++) {
        await page.getByLabel("Time").fill(local(new Date(from + (to - from) * ((i * 5 + 3) % 17) / 17)));
        waits.push(await page.evaluate(go));
    }
    say(`jumps: ${waits.map((w) => w.toFixed(0)).join(", ")} ms`);
    emit("log_10m_jump_ms", median(waits), "ms");
}

/* ---- an hour ---- */

/* What waits half a second or more waits a sixtieth of that. */
function hurry() {
    const real = window.setTimeout;
    window.setTimeout = (f, ms, ...more) => real(f, ms >= 500 ? ms / 60 : ms, ...more);
}

async function used(cdp) {
    await cdp.send("HeapProfiler.collectGarbage");
    return (await cdp.send("Runtime.getHeapUsage")).usedSize;
}

/* A trial that reports with each look that the page takes, for as many looks as an hour has. */
async function heap(page) {
    const config = "name: live\nsearcher: {name: single, metric: loss, max_length: 100000000}\n";
    const id = (await api("POST", "/experiments", { config, unmanaged: true })).experiment.id;
    const trial = (await api("POST", "/trials", { experimentId: id, hparams: {}, unmanaged: true })).trial.id;
    const run = (await api("POST", `/trials/${trial}/start`, { trialId: trial })).trialRunId;
    await page.addInitScript(hurry);
    await signIn(page);
    const cdp = await page.context().newCDPSession(page);
    let looks = 0, base = 0;
    page.on("response", (r) => { looks += /time-series/.test(r.url()) ? 1 : 0; });
    await page.goto(`${url}/det/experiments/${id}`);
    for (let told = 0; told < 3600; told++) {
        await api("POST", `/trials/${trial}/metrics`, { metrics: { trialId: trial, trialRunId: run, stepsCompleted: told + 1, metrics: { avgMetrics: { loss: 1 / (told + 1) } } }, group: "training" });
        for (const end = Date.now() + 5000; looks <= told && Date.now() < end;) await sleep(2);
        if (told === 60) base = await used(cdp);
    }
    const now = await used(cdp);
    say(`${looks} looks; ${(base / 1e6).toFixed(1)} MB after a minute of them, ${(now / 1e6).toFixed(1)} MB after an hour`);
    await api("PATCH", `/trials/${trial}`, { trialId: trial, state: "STATE_COMPLETED" });
    emit("heap_hour_over_minute", now / base, "");
}

/* ---- a hundred pages ---- */

async function record(page, id) {
    const asked = [];
    await signIn(page);
    await page.goto(`${url}/det/experiments/${id}`);
    await page.locator(".curve-summary").waitFor();
    await sleep(2000);
    const begin = Date.now();
    page.on("request", (r) => { if (r.method() === "GET" && r.url().includes("/api/")) asked.push([Date.now() - begin, r.url().slice(url.length)]); });
    await sleep(RECORD_MS);
    say(`an open page asks ${asked.length} times in ${RECORD_MS / 1000} s`);
    console.log(JSON.stringify(asked));
}

/* Until it is ended. */
async function replay(_, file) {
    const asked = JSON.parse(readFileSync(file, "utf8"));
    const ask = (agent, path) => new Promise((done) => get(url + path, { agent, headers }, (r) => { r.resume(); r.on("end", done); }).on("error", done));
    const one = async (late) => {
        const agent = new Agent({ keepAlive: true, maxSockets: 6 });
        await sleep(late);
        for (;;) {
            const begin = Date.now();
            await Promise.all(asked.map(async ([at, path]) => { await sleep(at); await ask(agent, path); }));
            await sleep(Math.max(0, RECORD_MS - (Date.now() - begin)));
        }
    };
    await Promise.all(Array.from({ length: PAGES }, (_, i) => one(i * RECORD_MS / PAGES)));
}

const PARTS = { list, curves, logs, heap, record, replay }, [name, arg] = process.argv.slice(2);
if (name === "replay") await replay(null, arg);
const browser = await chromium.launch({ executablePath: process.env.DET_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
    const page = await (await browser.newContext({ viewport: { width: 1400, height: 1000 } })).newPage();
    page.setDefaultTimeout(60_000);
    await PARTS[name](page, arg);
} finally {
    await browser.close();
}
