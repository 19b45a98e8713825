// A part of an axis is marked: table, words and address follow; another person's browser shows the same; taken away, all is back.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { api, check, create, exampleConfig, pictures, seemly, until, url } from "./harness.mjs";

async function saved(page, part, button) {
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("region", { name: part }).getByRole("button", { name: button }).click()]);
    return { name: file.suggestedFilename(), bytes: readFileSync(await file.path()) };
}

/* The lines and bands of the curves' file; it is asked for without moving the pointer or the focus. */
async function drawnCurves(page) {
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("region", { name: "Curves" }).getByRole("button", { name: "SVG" }).dispatchEvent("click")]);
    const all = await page.evaluate((text) => [...new DOMParser().parseFromString(text, "image/svg+xml").querySelectorAll("g[clip-path] path")].map((p) => ({ d: p.getAttribute("d"), isLine: p.getAttribute("fill") === "none", opacity: p.getAttribute("opacity") })),
        readFileSync(await file.path(), "utf8"));
    const lines = (opacity) => all.filter((p) => p.isLine && p.opacity === opacity).map((p) => p.d);
    return { back: lines("0.35"), plain: lines("0.9"), front: lines(null), raw: lines("0.25"), bands: all.filter((p) => !p.isLine && p.opacity === "0.18").map((p) => p.d) };
}

/* What is on the screen: the picture behind, how much of it is as faint as a band, and how much of the layer in front is drawn on. */
const onScreen = (page) => page.getByRole("region", { name: "Curves" }).evaluate((region) => {
    const [behind, front] = [...region.querySelectorAll("canvas")].map((c) => {
        const pen = Object.assign(document.createElement("canvas"), { width: c.width, height: c.height }).getContext("2d", { willReadFrequently: true });
        pen.drawImage(c, 0, 0);
        return pen;
    });
    const count = (pen, is) => pen.getImageData(0, 0, pen.canvas.width, pen.canvas.height).data.reduce((n, v, i) => n + (i % 4 === 3 && is(v) ? 1 : 0), 0);
    return { picture: behind.canvas.toDataURL(), faint: count(behind, (a) => a >= 44 && a <= 48), front: count(front, (a) => a > 0), inFront: front.canvas.toDataURL() };
});

/* Curves outside the mark are grey, in the file and on the screen; what is pointed at, in the table or between the axes, lies in front. */
async function curvesFollow(page, trials, within, unmarked) {
    const lies = async (back, plain, front, when) => until(async () => { const d = await drawnCurves(page); return d.back.length === back && d.plain.length === plain && d.front.length === front; }, `${back} curves behind, ${plain} plain, ${front} in front, ${when}`);
    const n = trials.length, rows = page.getByRole("table", { name: "Trials" }).locator("tbody tr"), best = Math.max(...trials.map((t) => t.searcherMetricValue));
    await lies(n - within.length, within.length, 0, "marked");
    const marked = await onScreen(page);
    check(marked.picture !== unmarked.picture && marked.front === 0, "the curves on the screen do not follow the mark");
    await rows.first().hover();
    await lies(n - 1, 0, 1, "a row of the table under the pointer");
    check((await onScreen(page)).front > 0, "no curve on the screen comes to the front");
    const box = await page.getByRole("img", { name: /^Parallel coordinates/ }).boundingBox();
    await page.mouse.move(box.x + box.width - 41, box.y + 12); // where the best ends
    await until(async () => { const id = await rows.and(page.locator(".hover")).getAttribute("data-trial", { timeout: 1000 }).catch(() => null); return trials.find((t) => String(t.id) === id)?.searcherMetricValue === best; }, "the best trial's row to be marked");
    await lies(n - 1, 0, 1, "a line between the axes under the pointer");
    await page.mouse.move(5, 5);
    await until(async () => (await onScreen(page)).picture === marked.picture, "the marked curves again");
}

/* Whether a picture has a dot that is of a colour alone. */
const hasColour = (page, picture, colour) => page.evaluate(async ([src, want]) => {
    const image = new Image(), pen = document.createElement("canvas").getContext("2d");
    image.src = src;
    await image.decode();
    Object.assign(pen.canvas, { width: image.width, height: image.height });
    pen.drawImage(image, 0, 0);
    const { data } = pen.getImageData(0, 0, image.width, image.height), [r, g, b] = want.match(/\d+/g).map(Number);
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255 && Math.abs(data[i] - r) + Math.abs(data[i + 1] - g) + Math.abs(data[i + 2] - b) < 8) return true;
    return false;
}, [picture, colour]);

/* A trial's curve has the colour that its row has. */
async function oneColour(page) {
    const plot = page.getByRole("region", { name: "Curves" }).getByRole("group", { name: "The curves" });
    await plot.focus();
    for (const key of ["ArrowRight", "ArrowDown", "ArrowDown"]) {
        await page.keyboard.press(key);
        const id = /^trial (\d+) /.exec(await plot.getByRole("status").innerText())[1], front = await until(async () => { const s = await onScreen(page); return s.front > 0 && s.inFront; }, "a curve in front");
        const colour = await page.locator(`tr[data-trial="${id}"] .dot`).evaluate((d) => getComputedStyle(d).backgroundColor);
        check(await hasColour(page, front, colour), `the curve of trial ${id} is not drawn in ${colour}`);
    }
    await page.keyboard.press("Escape");
}

/* One press on another axis draws the curves once: a hundred thousand points are seen to be drawn twice. */
async function drawsOnce(page) {
    const times = await page.getByRole("region", { name: "Curves" }).getByLabel("log y").evaluate(async (box) => {
        const pen = CanvasRenderingContext2D.prototype, real = pen.clearRect;
        let n = 0;
        pen.clearRect = function (...at) { if (this.canvas.closest(".chart-box") && this.canvas.className !== "chart-front") n++; return real.apply(this, at); };
        const frame = () => new Promise((then) => requestAnimationFrame(then));
        for (let still = 0, was = n; still < 10; still = n === was ? still + 1 : 0, was = n) await frame(); // what came before has been drawn
        n = 0;
        box.click();
        for (let i = 0; i < 10 || !n; i++) await frame();
        pen.clearRect = real;
        return n;
    });
    check(times === 1, `the curves were drawn ${times} times`);
    await page.getByRole("region", { name: "Curves" }).getByLabel("log y").uncheck();
}

/* The smooth line over what was reported; the address has it, and with none all is as it was. */
async function smooths(page, id, trials) {
    await page.goto(`${url}/det/experiments/${id}`);
    await page.locator(".curve-summary", { hasText: `${trials.length} curves` }).waitFor();
    const slider = page.getByRole("region", { name: "Curves" }).getByLabel("smooth"), before = await drawnCurves(page), screen = await onScreen(page);
    await slider.fill("0.99");
    await until(() => new URL(page.url()).searchParams.get("smooth") === "0.99", "it in the address");
    const after = await drawnCurves(page);
    check(before.raw.length === 0 && after.raw.join() === before.plain.join(), "what was reported is not drawn behind");
    const way = (d) => d.split(/[ML]/).slice(1).map((p) => Number(p.split(" ")[1])).reduce((sum, y, i, all) => sum + (i ? Math.abs(y - all[i - 1]) : 0), 0);
    const ways = (lines) => lines.reduce((sum, d) => sum + way(d), 0);
    check(after.plain.length === trials.length && ways(after.plain) < 0.9 * ways(after.raw), `the smooth lines go ${ways(after.plain)} up and down, the others ${ways(after.raw)}`);
    check((await onScreen(page)).picture !== screen.picture, "nothing is smooth on the screen");
    await drawsOnce(page);
    await pictures(page, "experiment-smooth"); // another theme draws again
    await slider.fill("0");
    await until(async () => (await onScreen(page)).picture === screen.picture, "the curves as they were");
}

/* Charts as files: a PNG of twice 1000 pixels, and an SVG that is one and has the texts of the axes. */
async function asFiles(page, part, words) {
    const png = await saved(page, part, "PNG"), svg = await saved(page, part, "SVG");
    check(png.name.endsWith(".png") && png.bytes.subarray(1, 4).toString() === "PNG" && png.bytes.readUInt32BE(16) === 2000, `${png.name}: ${png.bytes.length} bytes`);
    const [root, texts, paths] = await page.evaluate((text) => {
        const d = new DOMParser().parseFromString(text, "image/svg+xml");
        return [d.documentElement.localName, [...d.querySelectorAll("text")].map((t) => t.textContent), d.querySelectorAll("path").length];
    }, svg.bytes.toString());
    check(svg.name.endsWith(".svg") && root === "svg" && paths > 10 && words.every((w) => texts.some((t) => t.includes(w))), `${svg.name}: ${root}, ${paths} paths, ${texts}`);
    if (process.env.DET_TEST_OUT) for (const f of [png, svg]) writeFileSync(join(process.env.DET_TEST_OUT, `saved-${part}${f.name.slice(-4)}`), f.bytes);
}

/* By the size of a batch, and where that is equal by what came of it; a third press leaves the one, a plain press all others. */
async function sorts(page, trials) {
    const head = (name) => page.getByRole("table", { name: "Trials" }).getByRole("button", { name }), by = (t) => [t.hparams.global_batch_size, t.searcherMetricValue];
    const rows = () => page.getByRole("table", { name: "Trials" }).locator("tbody tr").evaluateAll((all) => all.map((r) => Number(r.dataset.trial)));
    await head(/^global_batch_size/).click();
    for (let i = 0; i < 2; i++) await head(/^best accuracy/).click({ modifiers: ["Shift"] });
    await until(() => page.url().includes("sort=hp.global_batch_size&sort=-best"), "both keys in the address");
    const wanted = [...trials].sort((a, b) => by(a)[0] - by(b)[0] || by(b)[1] - by(a)[1] || a.id - b.id).map((t) => t.id);
    await until(async () => (await rows()).join() === wanted.join(), `the trials as ${wanted}`);
    await pictures(page, "experiment-sorted");
    await head(/^batches/).click();
    await until(() => page.url().endsWith("?sort=batches"), "the one key in the address");
    for (let i = 0; i < 2; i++) await head(/^batches/).click();
    await until(() => !page.url().includes("sort"), "no key in the address");
}

/* Trials of one batch size together: mean and deviation as their metrics have them; curves by group; the address has it. */
async function groups(page, id, trials) {
    await page.goto(`${url}/det/experiments/${id}`);
    await page.getByText(/^Group by:/).click();
    await page.getByRole("group", { name: "Group by" }).getByLabel("global_batch_size").check();
    await page.keyboard.press("Escape");
    const by = new Map(), table = page.getByRole("table", { name: "Groups of trials" }).locator("tbody tr");
    for (const t of trials) by.set(t.hparams.global_batch_size, [...(by.get(t.hparams.global_batch_size) ?? []), t.searcherMetricValue]);
    await until(async () => await table.count() === by.size, `${by.size} groups`);
    for (const [size, all] of by) {
        const cells = await table.filter({ has: page.locator(`td[data-label="global_batch_size"][title="${size}"]`) }).locator("td").evaluateAll((tds) => tds.map((td) => td.title));
        const mean = all.reduce((a, b) => a + b, 0) / all.length;
        check(Math.abs(Number(cells[3]) - mean) < 1e-9 && (all.length > 1) === (cells[4] !== ""), `${size}: ${cells}, not ${mean}`);
    }
    await page.locator(".curve-summary", { hasText: `${by.size} curve` }).waitFor();
    check(page.url().endsWith("?g=global_batch_size"), page.url());
    const { bands } = await drawnCurves(page), several = [...by.values()].filter((all) => all.length > 1).length;
    const isWide = (d) => { const ys = d.split(/[ML]/).slice(1).map((p) => p.split(" ")[1]); return ys.some((y, i) => y !== ys[ys.length - 1 - i]); };
    check(bands.length === by.size && bands.filter(isWide).length === several && several > 0, `${bands.filter(isWide).length} of ${bands.length} bands are wide, ${several} groups have several`);
    check((await onScreen(page)).faint > 1000, "no band on the screen");
    check(page.workers().some((w) => new URL(w.url()).pathname.startsWith("/assets/worker.")), "the page takes them together itself");
    await pictures(page, "experiment-groups");
}

/* Where the worker does not come, the page does its work: the same curves, the same weights. */
async function withoutWorker(page, another, id) {
    const other = await another(), asked = [], summary = async (p) => (await p.locator(".curve-summary", { hasText: /: [1-9]\d* curves?, [1-9]/ }).innerText()).split(";")[0];
    other.maySay.push(/^Failed to load resource: net::ERR_FAILED/);
    await other.route("**/assets/worker.*", (route) => { asked.push(route.request().url()); return route.abort(); });
    for (const p of [page, other]) await p.goto(`${url}/det/experiments/${id}?g=global_batch_size&tab=importance`);
    check(await summary(other) === await summary(page), `${await summary(other)}, not ${await summary(page)}`);
    const words = (p) => p.getByRole("table", { name: "Importance" }).locator("tbody").innerText();
    check(await words(other) === await words(page), `${await words(other)}, not ${await words(page)}`);
    check(asked.length === 1, `a worker was asked for ${asked.length} times`);
    await seemly(other);
    await other.context().close();
}

/* By keys alone: zoom, moving along, from point to point, a curve chosen, a part of an axis marked; with shift a drag moves what is seen. */
async function byKeys(page, id, trials) {
    await page.goto(`${url}/det/experiments/${id}`);
    const curves = page.getByRole("region", { name: "Curves" }), plot = curves.getByRole("group", { name: "The curves" }), key = (k) => page.keyboard.press(k), of = (name) => new URL(page.url()).searchParams.get(name);
    await curves.locator(".curve-summary", { hasText: `${trials.length} curves` }).waitFor();
    await plot.focus();
    await key("+");
    await until(() => of("z"), "a zoom in the address");
    const before = of("z").split("..").map(Number);
    await key("Shift+ArrowRight");
    await until(() => of("z") !== before.join(".."), "what is seen to move");
    const moved = of("z").split("..").map(Number);
    check(Math.abs(moved[0] - before[0] - (before[1] - before[0]) / 4) < 0.01 * (before[1] - before[0]), `${before} to ${moved}`);
    const over = await plot.locator(".u-over").boundingBox();
    await page.keyboard.down("Shift");
    await page.mouse.move(over.x + over.width / 2, over.y + 50);
    await page.mouse.down();
    await page.mouse.move(over.x + over.width, over.y + 50, { steps: 4 });
    await page.mouse.up();
    await page.keyboard.up("Shift");
    await until(() => of("z") !== moved.join(".."), "what is seen to be dragged along");
    const dragged = of("z").split("..").map(Number), wide = moved[1] - moved[0];
    check(Math.abs(moved[0] - wide / 2 - dragged[0]) < 0.02 * wide && Math.abs(dragged[1] - dragged[0] - wide) < 0.01 * wide, `${moved} to ${dragged}`);
    await page.mouse.move(5, 5);
    await plot.focus();
    await key("0");
    await until(() => of("z") === null, "the whole range");
    await key("ArrowRight");
    await plot.getByRole("status").getByText(/^trial \d+ · /).waitFor({ state: "attached" });
    const { front, inFront } = await onScreen(page);
    await key("ArrowDown");
    await until(async () => { const s = await onScreen(page); return front > 0 && s.front > 0 && s.inFront !== inFront; }, "the other curve in front");
    const told = /^trial (\d+) /.exec(await plot.getByRole("status").innerText())[1];
    await key("Enter");
    await until(() => of("t") === told, `trial ${told} to be chosen, not ${of("t")}`);
    await pictures(page, "experiment-keys");
    const space = page.getByRole("region", { name: "Hyperparameters" });
    await space.getByRole("button", { name: "learning_rate" }).focus();
    await key("Enter");
    const dialog = page.getByRole("dialog", { name: "Mark a part of learning_rate" }), rates = trials.map((t) => t.hparams.learning_rate).sort((a, b) => a - b);
    const types = async (end, text) => {
        await end.fill("");
        await end.pressSequentially(text);
        check(await end.inputValue() === text, `${text} became ${await end.inputValue()}`);
    };
    await types(dialog.getByLabel("From"), "-3");
    await types(dialog.getByLabel("From"), rates[0].toExponential()); // a key at a time: "1e-" is no number yet
    await types(dialog.getByLabel("To"), String(rates[1]));
    await pictures(page, "experiment-mark");
    await dialog.getByRole("button", { name: "Mark", exact: true }).press("Enter");
    await until(async () => await page.getByRole("table", { name: "Trials" }).locator("tbody tr").count() === 2, "the two within");
    await space.getByText(/^Axes: /).click();
    await page.getByRole("group", { name: "Axes" }).getByLabel("learning_rate").uncheck();
    await page.keyboard.press("Escape");
    await until(() => new URL(page.url()).searchParams.getAll("ax").length > 0 && !new URL(page.url()).searchParams.getAll("ax").includes("learning_rate"), "the other axes in the address");
    await space.getByRole("button", { name: "learning_rate", exact: true }).waitFor({ state: "detached" });
    await page.goto(`${url}/det/experiments/${id}?tab=scatter`);
    const dots = page.getByRole("region", { name: "Scatter" }).getByRole("group", { name: "The dots" });
    await until(async () => { // keys that come before the dots find none
        await dots.focus();
        await key("ArrowRight");
        await key("Enter");
        return trials.some((t) => String(t.id) === of("t"));
    }, "a dot to be chosen");
}

/* Curves by the records that were seen: as many points, further out by the batches' size. */
async function byRecords(page, id, trials) {
    await page.goto(`${url}/det/experiments/${id}?x=records`);
    await page.locator(".curve-summary", { hasText: new RegExp(`${trials.length} curves, [1-9]\\d* points`) }).waitFor();
    const curves = page.getByRole("region", { name: "Curves" });
    const [file] = await Promise.all([page.waitForEvent("download"), curves.getByRole("button", { name: "CSV" }).click()]);
    const [heads, ...lines] = readFileSync(await file.path(), "utf8").trim().split(/\r?\n/), size = new Map(trials.map((t) => [t.id, t.hparams.global_batch_size]));
    const rows = lines.map((l) => l.split(",")), metric = rows[0][1], reported = trials.reduce((n, t) => n + t.summaryMetrics.validation_metrics[metric.slice("validation.".length)].count, 0);
    check(heads === "trial,metric,records,value" && rows.every(([id, m, at]) => m === metric && Number(at) % size.get(Number(id)) === 0), `${heads}: ${lines.slice(0, 3)}`);
    check(rows.length === reported, `${rows.length} of ${reported} reports are in the file`);
}

/* An importance says on how many trials it rests, and that a few are too few. */
async function rests(page, n) {
    await page.getByText(`It rests on ${n} trials only: under 20, chance alone makes large numbers.`).waitFor();
    const of = await page.getByRole("table", { name: "Importance" }).locator("tbody tr").evaluateAll((rows) => rows.map((r) => Number(r.cells[3].textContent)));
    check(of.length > 1 && of.every((k) => k === n), `they rest on ${of}, not on ${n}`);
    const [file] = await Promise.all([page.waitForEvent("download"), page.locator("p", { hasText: "How strongly" }).getByRole("button", { name: "CSV" }).click()]);
    const [head, ...rows] = readFileSync(await file.path(), "utf8").trim().split("\r\n").map((l) => l.split(","));
    check(head.join() === "hyperparameter,weight,trials" && rows.length === of.length && rows.every(([, w, k]) => Math.abs(w) <= 1 && Number(k) === n), rows.join("|"));
}

/* The log of one trial beside the curves: what it is filtered by stays where another trial is chosen and the curves change. */
async function logs(page, trials) {
    const box = page.getByRole("log"), choice = page.getByRole("combobox", { name: "Log of" }), last = trials.at(-1).id;
    await box.locator(".log-line").first().waitFor();
    check(await choice.inputValue() === String(trials[0].id), `the log of ${await choice.inputValue()}`);
    await page.getByLabel("Search", { exact: true }).fill("batch");
    await page.getByRole("button", { name: "Find" }).click();
    await choice.selectOption(String(last));
    await page.getByRole("region", { name: "Curves" }).getByLabel("log y").check();
    await until(() => { const q = new URL(page.url()).searchParams; return q.get("tab") === "logs" && q.get("log") === String(last) && q.get("search") === "batch" && q.get("y") === "log"; }, "all of it in the address");
    await page.getByRole("region", { name: "Curves" }).getByLabel("log y").uncheck();
    await page.getByLabel("Search", { exact: true }).fill("");
    await page.getByRole("button", { name: "Find" }).click();
    await until(() => !new URL(page.url()).searchParams.has("search"), "no search");
    await box.locator(".log-line").first().waitFor();
}

/* Every trial with what it spent its time with: no more than it took. */
async function timeline(page, trials) {
    const rows = page.getByRole("table", { name: "What trials spent their time with" }).locator("tbody tr");
    await until(async () => await rows.count() === trials.length, "a row a trial");
    const told = await rows.evaluateAll((all) => all.map((r) => [Number(r.dataset.row), [...r.querySelectorAll("td span[title]")].map((c) => Number(c.title))]));
    for (const [id, seconds] of told) {
        const { events } = await api("GET", `/trials/${id}/timeline`), took = events.at(-1).offset, sum = seconds.reduce((a, b) => a + b, 0);
        check(seconds.length === 5 && seconds[2] > 0 && Math.abs(sum - took) < 0.01 * took + 0.01, `trial ${id}: ${seconds} of ${took} s`);
    }
}

/* The list shows what the best trial had. */
async function inTheList(page, id) {
    const { experiment } = await api("GET", `/experiments/${id}`), { trial } = await api("GET", `/trials/${experiment.bestTrialId}`);
    await page.goto(`${url}/det/experiments?hp=learning_rate`);
    const cell = page.locator(`tr[data-experiment="${id}"]`).getByTitle(`${trial.hparams.learning_rate} in trial ${trial.id}, the best`);
    check(Math.abs(Number(await cell.innerText()) / trial.hparams.learning_rate - 1) < 1e-3, await cell.innerText());
}

export default async function ({ page, another }) {
    const id = await create(exampleConfig("digits/random.yaml"), "digits");
    await until(async () => (await api("GET", `/experiments/${id}`)).experiment.state === "STATE_COMPLETED", "the search to end");
    const { trials } = await api("GET", `/experiments/${id}/trials`), best = Math.max(...trials.map((t) => t.searcherMetricValue));
    await page.goto(`${url}/det/experiments/${id}`);
    const rows = (p) => p.getByRole("table", { name: "Trials" }).locator("tbody tr");
    await rows(page).nth(trials.length - 1).waitFor();
    await sorts(page, trials);
    await page.locator(".curve-summary", { hasText: `${trials.length} curves` }).waitFor();
    await oneColour(page);
    await page.mouse.move(5, 5);
    const unmarked = await onScreen(page);
    const box = await page.getByRole("img", { name: /^Parallel coordinates/ }).boundingBox(), x = box.x + box.width - 40;
    await page.mouse.move(x, box.y + 4);
    await page.mouse.down();
    await page.mouse.move(x, box.y + 40, { steps: 3 });
    await page.mouse.up();
    await page.getByRole("button", { name: "Take the mark of accuracy away" }).waitFor();
    const [, lo, hi] = /accuracy:([^.]*\.[^.]*)\.\.([^&]*)/.exec(decodeURIComponent(page.url()));
    const within = trials.filter((t) => t.searcherMetricValue >= Number(lo) && t.searcherMetricValue <= Number(hi)).map((t) => String(t.id));
    check(within.length > 0 && within.length < trials.length && Number(hi) === best, `${within.length} of ${trials.length} in ${lo}..${hi}`);
    const ids = (p) => rows(p).evaluateAll((all) => all.map((r) => r.dataset.trial));
    await until(async () => (await ids(page)).join() === within.join(), "the table to show what lies within");
    await pictures(page, "experiment-marked");
    const csv = (await saved(page, "Hyperparameters", "CSV")).bytes.toString().trim().split("\r\n").map((l) => l.split(","));
    check(csv[0][0] === "trial" && csv[0].includes("learning_rate") && csv[0].at(-1) === "accuracy", csv[0].join());
    check(csv.slice(1).map((r) => r[0]).join() === within.join() && csv.slice(1).every((r) => Number(r.at(-1)) === trials.find((t) => String(t.id) === r[0]).searcherMetricValue), csv.join(" | "));
    const other = await another();
    await other.goto(page.url());
    await until(async () => (await ids(other)).join() === within.join(), "the same in another browser");
    await other.context().close();
    check(await rows(page).first().getByRole("link", { name: "log" }).getAttribute("href") === `/det/trials/${within[0]}/logs`, "no link to the trial's log");
    await curvesFollow(page, trials, within, unmarked);
    await rows(page).first().hover();
    await until(async () => await page.locator("tr.hover").count() === 1, "the row under the pointer to be marked");
    await page.mouse.move(5, 5);
    await page.getByRole("button", { name: "Take the mark of accuracy away" }).click();
    await rows(page).nth(trials.length - 1).waitFor();
    await until(() => !page.url().includes("brush"), "no mark in the address");
    await page.mouse.move(5, 5);
    await until(async () => (await onScreen(page)).picture === unmarked.picture, "the curves as before the mark");
    await asFiles(page, "Curves", ["digits_random", "validation.accuracy", `trial ${trials[0].id}`]);
    await asFiles(page, "Hyperparameters", ["learning_rate", "accuracy"]);
    for (const tab of ["scatter", "importance", "rungs", "checkpoints", "logs", "timeline", "config", "notes"]) {
        await page.getByRole("navigation", { name: "Parts of the experiment" }).getByRole("link", { name: tab }).click();
        await page.locator(`.tabs a[aria-current]`, { hasText: tab }).waitFor();
        if (tab === "logs") await logs(page, trials);
        if (tab === "timeline") await timeline(page, trials);
        await pictures(page, `experiment-${tab}`);
        if (tab === "importance") await rests(page, trials.length);
        if (tab === "scatter") await asFiles(page, "Scatter", ["coloured by accuracy"]);
    }
    await page.goto(`${url}/det/trials/${within[0]}`);
    await page.getByText("As a table").click();
    const { events } = await api("GET", `/trials/${within[0]}/timeline`);
    const table = page.getByRole("table", { name: "Timeline" }).locator("tbody tr");
    await table.nth(events.length - 1).waitFor();
    const kinds = await table.evaluateAll((all) => all.map((r) => r.cells[3].textContent));
    check(kinds.join() === events.map((e) => e.kind).join(), `the timeline shows ${kinds}`);
    await page.locator(".curve-summary", { hasText: /[1-9]\d* points/ }).waitFor();
    await pictures(page, "trial");
    await byKeys(page, id, trials);
    await smooths(page, id, trials);
    await groups(page, id, trials);
    await withoutWorker(page, another, id);
    await byRecords(page, id, trials);
    await inTheList(page, id);
}
