import assert from "node:assert/strict";
import { test } from "node:test";
import { drawCurves, type Curve } from "../../../src/charts/draw";
import { scale } from "../../../src/charts/scales";
import { escaped, SvgPen } from "../../../src/charts/svg";

const text = (pen: SvgPen) => pen.text(100, 50, "a title");
const between = (svg: string) => svg.slice(svg.indexOf("\n") + 1, svg.lastIndexOf("\n</svg>"));

test("no text of people's gets out of its place, and any text makes good XML", () => {
    assert.equal(escaped(`</text><script>"&\u0000\u0007\ud800x\ud83d\ude00`), "&lt;/text&gt;&lt;script&gt;&quot;&amp;\ufffd\ufffd\ufffdx\ud83d\ude00");
    const pen = new SvgPen();
    pen.fillStyle = "\"><script>";
    pen.font = "600 14px \"A B\", sans-serif";
    pen.fillText("<b>é</b>", 1, 2);
    assert.match(text(pen), /font-weight="600" font-size="14" font-family="&quot;A B&quot;, sans-serif" fill="&quot;&gt;&lt;script&gt;">&lt;b&gt;é&lt;\/b&gt;<\/text>/);
    assert.match(new SvgPen().text(1, 2, "<x>"), /^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" width="1" height="2" viewBox="0 0 1 2" role="img"><title>&lt;x&gt;<\/title>/);
});

test("paths, rectangles, circles and texts as a canvas draws them", () => {
    const pen = new SvgPen();
    pen.strokeStyle = "#f00";
    pen.lineWidth = 2;
    pen.globalAlpha = 0.5;
    pen.setLineDash([6, 3]);
    pen.beginPath();
    pen.lineTo(0, 1 / 3);
    pen.lineTo(10, -0.001);
    pen.stroke();
    assert.equal(between(text(pen)), `<path d="M0 0.33L10 0" fill="none" stroke="#f00" stroke-width="2" stroke-linejoin="miter" stroke-dasharray="6 3" opacity="0.5"/>`);
    const other = new SvgPen();
    other.beginPath();
    other.stroke(); // of nothing
    other.arc(5, 5, 2);
    other.fill();
    other.fillRect(1, 2, 3, 4); // leaves the path alone
    other.fill();
    other.textAlign = "right";
    other.textBaseline = "middle";
    other.fillText("t", 1, 2);
    const [dot, box, again, word] = between(text(other)).split("\n");
    assert.equal(dot, `<path d="M3 5a2 2 0 1 0 4 0a2 2 0 1 0 -4 0z" fill="#000"/>`);
    assert.equal(box, `<path d="M1 2h3v4h-3z" fill="#000"/>`);
    assert.equal(again, dot);
    assert.equal(word, `<text x="1" y="2" font-size="10" font-family="sans-serif" fill="#000" text-anchor="end" dominant-baseline="central">t</text>`);
});

test("what was saved comes back, and every group is closed", () => {
    const pen = new SvgPen();
    pen.save();
    pen.fillStyle = "#123";
    pen.translate(3, 4);
    pen.beginPath();
    pen.rect(0, 0, 5, 5);
    pen.clip();
    pen.restore();
    pen.restore(); // nothing was saved
    assert.equal(pen.fillStyle, "#000");
    pen.translate(1, 1); // stays open to the end
    const svg = text(pen), count = (what: RegExp) => svg.match(what)?.length;
    assert.deepEqual([count(/<g /g), count(/<\/g>/g), count(/<clipPath id="clip1">/g), count(/clip-path="url\(#clip1\)"/g)], [3, 3, 1, 1]);
});

test("curves go into a file as they go onto the screen", () => {
    const curve = (id: number, layer: Curve["layer"]): Curve => ({ id, label: `trial ${id}`, points: { x: [0, 1, 2, 3], y: [1, NaN, 2, 3] }, raw: null, colour: `#00000${id}`, dash: [], layer });
    const pen = new SvgPen();
    drawCurves(pen, [curve(1, "front"), curve(2, "back")], scale("linear", 0, 3, 10, 90), scale("linear", 1, 3, 40, 10), 1, "#999");
    const strokes = [...text(pen).matchAll(/<path d="([^"]*)" fill="none" stroke="([^"]*)"/g)].map((m) => [m[2], m[1]!.replace(/[\d. ]/g, "")]);
    assert.deepEqual(strokes.map(([colour]) => colour), ["#999", "#000001"]);
    assert.ok(!/NaN|Infinity|undefined/.test(text(pen)), text(pen));
});

test("the band of a deviation is one filled path, along its upper edge and back along the lower", () => {
    const x = scale("linear", 0, 2, 0, 20), y = scale("linear", 0, 10, 100, 0), points = { x: [0, 1, 2], y: [2, 3, 4] };
    const drawn = (layer: Curve["layer"]) => {
        const pen = new SvgPen(), band = { x: [0, 1, 2], lo: [1, NaN, 3], hi: [3, 5, 5] };
        drawCurves(pen, [{ id: 1, label: "a", points, raw: null, colour: "#00f", dash: [], layer, band }], x, y, 1, "#999");
        return text(pen).split("\n").filter((l) => l.includes('opacity="0.18"'));
    };
    assert.deepEqual(drawn("plain"), [`<path d="M0 70L10 50L20 50L20 70L0 90" fill="#00f" opacity="0.18"/>`]);
    assert.deepEqual(drawn("back"), []);
});
