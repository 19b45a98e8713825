import assert from "node:assert/strict";
import { test } from "node:test";
import { csvLines } from "../../../src/ui/words/save";

const line = (v: unknown): string => csvLines([[v]]);

test("no value is a formula in a spreadsheet, whatever it is made of", () => {
    for (const begin of ["=", "+", "-", "@", "\t", "\uff1d", "\uff0b", "\uff0d", "\uff20"]) assert.equal(line(`${begin}1`), `'${begin}1\r\n`);
    for (const begin of ["\r", "\n"]) assert.equal(line(`${begin}=1`), `"'${begin}=1"\r\n`);
    const hostile = { toString: () => "=1+1", toJSON: () => "x" };
    assert.deepEqual([line(["=1+1"]), line(hostile), line({ a: 1 })], ['"[""=1+1""]"\r\n', '"""x"""\r\n', '"{""a"":1}"\r\n']);
});

test("numbers and truths stay what they are, and nothing is an empty cell", () => {
    assert.equal(csvLines([[-1, 0.5, -Infinity, NaN, true, null, undefined, "x=1"]]), "-1,0.5,-Infinity,NaN,true,,,x=1\r\n");
});
