// node bench.mjs: the figures of `bench/run web`, on the master of $DET_TEST_URL.
import { readFileSync, readdirSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { chromium } from "playwright-core";

const url = process.env.DET_TEST_URL, ASSETS = new URL("../dist/assets/", import.meta.url).pathname;
const emit = (figure, value, unit) => console.log(JSON.stringify({ bench: "web", figure, value, unit, peer: null, peer_value: null, ratio: null }));
const round = (x) => Math.round(x * 10) / 10;
const kb = (names) => round(names.reduce((n, f) => n + gzipSync(readFileSync(ASSETS + f)).length, 0) / 1024);

/* Begins before the page's own code: the moment at which the first row of the list is in the document, at the next frame. */
function watch() {
    const seen = () => (document.querySelector("[role=row] a[href*='/experiments/'], tbody a[href*='/experiments/']")
        ? requestAnimationFrame((t) => { window.firstRow = t; }) : requestAnimationFrame(seen));
    requestAnimationFrame(seen);
}

/* Scrolls the tallest box by 400 pixels a frame; the time of every frame. */
function scroll() {
    const boxes = [...document.querySelectorAll("*")].filter((e) => e.scrollHeight > e.clientHeight + 1000 && /auto|scroll/.test(getComputedStyle(e).overflowY));
    const box = boxes.sort((a, b) => b.scrollHeight - a.scrollHeight)[0] ?? document.scrollingElement;
    return new Promise((done) => {
        const at = [], frame = (t) => {
            at.push(t);
            box.scrollTop += 400;
            if (t - at[0] < 5000) requestAnimationFrame(frame);
            else done({ at, height: box.scrollHeight, top: box.scrollTop, first: document.body.innerText.slice(0, 300) });
        };
        requestAnimationFrame(frame);
    });
}

const browser = await chromium.launch({ executablePath: process.env.DET_CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox"] });
try {
    const page = await (await browser.newContext({ viewport: { width: 1400, height: 1000 } })).newPage();
    page.setDefaultTimeout(30000);
    await page.addInitScript(watch);
    await page.goto(url);
    await page.getByLabel("Username").fill("admin");
    await page.getByLabel("Password").fill(process.env.DET_TEST_PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.waitForFunction(() => window.firstRow);
    const used = await page.evaluate(() => performance.getEntriesByType("resource").map((r) => r.name).filter((n) => /\.(js|css)$/.test(n)));
    emit("bundle_gzip_kb (first view)", kb(used.map((n) => n.split("/").pop())), "KB");
    emit("bundle_gzip_kb (all)", kb(readdirSync(ASSETS).filter((f) => /\.(js|css)$/.test(f))), "KB");
    const waits = [];
    for (let i = 0; i < 7; i++) {
        await page.reload();
        await page.waitForFunction(() => window.firstRow);
        waits.push(await page.evaluate(() => [performance.getEntriesByName("first-contentful-paint")[0]?.startTime, window.firstRow]));
    }
    const median = (k) => round(waits.map((w) => w[k]).sort((a, b) => a - b)[3]);
    console.error("first paint, first row:", JSON.stringify(waits));
    emit("first_paint_ms (warm)", median(0), "ms");
    emit("first_content_ms (warm)", median(1), "ms");
    const s = await page.evaluate(scroll), gaps = s.at.slice(1).map((t, i) => t - s.at[i]).sort((a, b) => a - b);
    console.error(`height ${s.height}, reached ${s.top}, gap p95 ${gaps[Math.floor(gaps.length * 0.95)]}, max ${gaps.at(-1)} ms`);
    emit("list_100k_fps", round(gaps.length * 1000 / (s.at.at(-1) - s.at[0])), "frames/s");
} finally {
    await browser.close();
}
