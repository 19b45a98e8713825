/* A configuration's text without how to sign in to a registry. It comes with the YAML parser, when it is needed. */
import { isAlias, isScalar, parseDocument, visit, type Document, type Scalar } from "yaml";
import { DOTS, SECRET, secretsOf } from "./secrets";

const LONG = 4; // letters: fewer are found in words that have nothing to do with it

/* Where the values of such keys stand, those that are named by an alias too. */
function placesOf(doc: Document, secrets: readonly string[]): Scalar[] {
    const found = new Set<Scalar>();
    visit(doc, { Pair: (_, { key, value: v }) => {
        const value = isAlias(v) ? v.resolve(doc) : v;
        if (isScalar(key) && SECRET.includes(String(key.value)) && isScalar(value) && secrets.includes(value.value as string)) found.add(value);
    } });
    return [...found].sort((a, b) => a.range![0] - b.range![0]);
}

/* In quotes where it was; a text of several lines ends its line. */
function dotted(raw: string): string {
    const quote = /^["']/.exec(raw)?.[0] ?? "";
    return quote + DOTS + quote + (raw.endsWith("\n") ? "\n" : "");
}

/* Everything else of the text, where a long one may stand again, e.g. in a comment. */
const plain = (text: string, secrets: readonly string[]): string => secrets.filter((s) => s.length >= LONG).reduce((t, s) => t.split(s).join(DOTS), text);

/* null: it cannot be read so that one is sure to have found all that it has. */
export function hiddenText(text: string): string | null {
    try {
        const doc = parseDocument(text, { merge: true, uniqueKeys: false }), secrets = secretsOf(doc.toJS());
        if (doc.errors.length) return null;
        const places = placesOf(doc, secrets);
        if (!secrets.every((s) => places.some((p) => p.value === s))) return null;
        let out = "", at = 0;
        for (const { range } of places) {
            out += plain(text.slice(at, range![0]), secrets) + dotted(text.slice(range![0], range![1]));
            at = range![1];
        }
        return out + plain(text.slice(at), secrets);
    } catch {
        return null; // e.g. aliases that grow without end
    }
}
