/* What programs and people write of a model or a version, each under its key: shown, and written as YAML. */
import { parse, stringify } from "yaml";
import { value } from "../../ui/words/format";
import { Grid } from "../../ui/table/grid";
import { Name } from "../../ui/words/name";

export type Words = Record<string, unknown>;

export function textOf(of: Words): string {
    return Object.keys(of).length ? stringify(of) : "";
}

/* What a text says; a mistake in it is told at its line. */
export function metadataOf(text: string): Words {
    const of: unknown = parse(text) ?? {};
    if (typeof of !== "object" || of === null || Array.isArray(of)) throw new Error("metadata has keys: write each on a line of its own, as in “source: web”");
    return of as Words;
}

/* The first value that a browser would send otherwise than it was written: NaN is no JSON, and of a long integer the end is lost. */
function lostIn(of: unknown, at = ""): string {
    if (typeof of === "number") return Number.isSafeInteger(of) || (Number.isFinite(of) && !Number.isInteger(of)) ? "" : at;
    if (typeof of !== "object" || of === null) return "";
    for (const [key, v] of Object.entries(of)) {
        const lost = lostIn(v, at ? `${at}.${key}` : key);
        if (lost) return lost;
    }
    return "";
}

/* What is sent in place of what the dialog had, all keys of it; `now`: what there is, as programs write there, too. */
export async function replacing(had: string, text: string, now: () => Promise<Words>): Promise<Words> {
    const of = metadataOf(text), lost = lostIn(of);
    if (lost) throw new Error(`metadata: ${lost} is a number that a page cannot send as it is (no integer beyond 2^53, no NaN or infinity): write it in quotes, or save from a program`);
    if (textOf(await now()) !== had) throw new Error("the metadata was changed meanwhile: copy your text, open this again, and write it into what is there now");
    return of;
}

export function Metadata({ of }: { of: Words }) {
    const all = Object.entries(of);
    return all.length ? <section class="panel stacked" aria-label="Metadata"><h2>Metadata</h2><Grid name="Metadata" rows={all} keyOf={([key]) => key} none="" columns={[
        { head: "key", cell: ([key]) => <Name text={key} /> }, { head: "value", cell: ([, v]) => <Name text={typeof v === "object" ? JSON.stringify(v) : value(v)} /> }]} /></section> : null;
}

export function MetadataField({ text, set }: { text: string; set: (text: string) => void }) {
    return <label>Metadata, as YAML <textarea rows={4} value={text} spellcheck={false} onInput={(e) => set(e.currentTarget.value)} /></label>;
}
