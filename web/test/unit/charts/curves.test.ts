import assert from "node:assert/strict";
import { test } from "node:test";
import { ranges, xText } from "../../../src/charts/curves_picture";
import { drawCurves, type Curve } from "../../../src/charts/draw";
import { scale } from "../../../src/charts/scales";
import { SvgPen } from "../../../src/charts/svg";
import { smooth } from "../../../src/charts/smooth";

const curve = (id: number, x: number[], y: number[], more: Partial<Curve> = {}): Curve => ({ id, label: `trial ${id}`, points: { x, y }, raw: null, colour: "#00f", dash: [], layer: "plain", ...more });
const shape = (curves: Curve[], zoom: [number, number] | null = null) => ({ curves, x: "batches" as const, logX: false, logY: false, zoom });

test("what was reported has room behind the smooth line: a spike is not cut off", () => {
    const raw = { x: [0, 1, 2, 3, 4], y: [1, 1, 100, 1, 1] }, smoothed = curve(1, [], [], { points: smooth(raw, 0.9), raw });
    assert.ok(Math.max(...smoothed.points.y) < 100);
    assert.deepEqual(ranges(shape([smoothed])), ranges(shape([curve(1, raw.x, raw.y)])));
});

test("a smooth line that lags has room where a zoom shows nothing of what was reported near it", () => {
    const raw = { x: [0, 1, 2, 3], y: [100, 100, 0, 0] }, points = { x: raw.x, y: [100, 100, 90, 81] };
    assert.deepEqual(ranges(shape([curve(1, [], [], { points, raw })], [2, 3])), { x: [2, 3], y: [0 - 0.05 * 90, 90 + 0.05 * 90] });
});

test("a band has room too, and of both only what is seen", () => {
    const band = { x: [0, 1, 2], lo: [-10, 0, -99], hi: [10, 2, 99] }, all = [curve(1, [0, 1, 2], [0, 1, 50], { band })];
    assert.deepEqual(ranges(shape(all)), { x: [0, 2], y: [-99 - 0.05 * 198, 99 + 0.05 * 198] });
    assert.deepEqual(ranges(shape(all, [0, 1])), { x: [0, 1], y: [-11, 11] });
});

test("marks of a clock have what tells them apart", () => {
    const t = Date.parse("2026-11-25T10:00:00.250Z"), of = (span: number) => xText("clock", t, span).replace(/^.*:30/, "…:30"); // of Calcutta, half an hour off
    assert.deepEqual([of(500), of(5000), of(60e3), of(3600e3)], ["…:30:00.250", "…:30:00.2", "…:30:00", "…:30"]);
    assert.equal(of(0), "…:30:00"); // of one point
});

test("a star at the edge of what is seen is whole; one beyond it is not there", () => {
    const drawn = (at: number) => {
        const pen = new SvgPen();
        drawCurves(pen, [curve(1, [0, 1], [0, 1], { star: { x: at, y: at } })], scale("linear", 0, 1, 0, 100), scale("linear", 0, 1, 100, 0), 1, "#888");
        return pen.text(100, 100, "t").replace(/<clipPath.*?<\/clipPath>|<g clip-path.*?<\/g>/gs, "").match(/<path/g)?.length ?? 0;
    };
    assert.deepEqual([drawn(1), drawn(2)], [1, 0]);
});
