import assert from "node:assert/strict";
import { test } from "node:test";
import { colourOf, dashesOf, heat, luminance, onHeat, palette, rgbOf, type Rgb } from "../../../src/charts/palette";

const linear = (c: number) => (c <= 0.04045 ? c / 12.92 : Math.pow((c + 0.055) / 1.055, 2.4));
const gamma = (c: number) => (c <= 0.0031308 ? 12.92 * c : 1.055 * Math.pow(c, 1 / 2.4) - 0.055);
// Machado, Oliveira and Fernandes 2009, severity 1.
const EYES: Record<string, number[][]> = {
    protan: [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    deutan: [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
};

function seen(rgb: Rgb, eye: string): Rgb {
    const lin = rgb.map((c) => linear(c / 255));
    return EYES[eye]!.map((row) => 255 * gamma(Math.min(1, Math.max(0, row.reduce((s, w, i) => s + w * lin[i]!, 0))))) as Rgb;
}

function lab(rgb: Rgb): number[] {
    const [r, g, b] = rgb.map((c) => linear(c / 255)) as Rgb;
    const xyz = [(0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.9505, 0.2126 * r + 0.7152 * g + 0.0722 * b, (0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.089];
    const [x, y, z] = xyz.map((t) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116)) as Rgb;
    return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

const apart = (a: Rgb, b: Rgb) => Math.hypot(...lab(a).map((v, i) => v - lab(b)[i]!));

for (const dark of [false, true])
    for (const eye of ["protan", "deutan"])
        test(`ten colours stay apart for ${eye} eyes, ${dark ? "dark" : "light"}`, () => {
            const all = palette(dark).map(rgbOf);
            for (let i = 0; i < all.length; i++)
                for (let j = 0; j < i; j++) {
                    const d = apart(seen(all[i]!, eye), seen(all[j]!, eye));
                    assert.ok(d >= 9, `${palette(dark)[i]} and ${palette(dark)[j]}: ${d.toFixed(1)}`);
                }
        });

test("lines are seen on both grounds", () => {
    const contrast = (rgb: Rgb, ground: number) => {
        const [a, b] = [luminance(rgb) + 0.05, ground + 0.05];
        return Math.max(a, b) / Math.min(a, b);
    };
    for (const c of palette(false)) assert.ok(contrast(rgbOf(c), 1) >= 3, c);
    for (const c of palette(true)) assert.ok(contrast(rgbOf(c), luminance([20, 22, 26])) >= 3, c);
});

test("an id keeps its colour; of those drawn together that share one the dash differs, and one alone is solid", () => {
    assert.equal(colourOf(13, false), colourOf(3, false));
    assert.deepEqual(dashesOf([35]).get(35), []);
    const all = dashesOf([47, 36, 37, 57]);
    assert.deepEqual([36, 37].map((id) => all.get(id)), [[], []]);
    assert.equal(new Set([37, 47, 57].map((id) => JSON.stringify(all.get(id)))).size, 3);
    assert.deepEqual(dashesOf([36, 37, 47, 57, 67]).get(57), all.get(57)); // what comes later changes nothing
    const ten = dashesOf(Array.from({ length: 10 }, (_, i) => 95 + i));
    assert.ok([...ten.values()].every((d) => !d.length));
    assert.equal(typeof colourOf(-1, true), "string");
});

test("the heat's lightness grows with the value", () => {
    for (const dark of [false, true]) {
        let before = -1;
        for (let v = 0; v <= 1.0001; v += 0.05) {
            const l = luminance(heat(v, dark).match(/\d+/g)!.map(Number) as Rgb);
            assert.ok(l > before, `${v}`);
            before = l;
        }
    }
    assert.match(heat(NaN, true), /^#/);
    assert.equal(heat(7, false), heat(1, false));
});

const rgb = (colour: string): Rgb => (colour.startsWith("#") ? rgbOf(colour) : colour.match(/\d+/g)!.map(Number) as Rgb);

test("a cell's text can be read on each lightness, and cells ten steps apart are told apart by any eye", () => {
    for (const dark of [false, true]) {
        for (const part of [NaN, ...Array.from({ length: 101 }, (_, i) => i / 100)]) {
            const [a, b] = [luminance(rgb(heat(part, dark))), luminance(rgb(onHeat(part, dark)))];
            assert.ok((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05) >= 4.5, `${part} ${dark}`);
        }
        for (const eye of ["protan", "deutan"])
            for (let i = 0; i < 10; i++) assert.ok(apart(seen(rgb(heat(i / 10, dark)), eye), seen(rgb(heat((i + 1) / 10, dark)), eye)) >= 4, `${eye} ${i}`);
    }
});
