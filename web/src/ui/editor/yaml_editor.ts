/* The YAML editor, loaded when it is first shown. It lives in a shadow tree: there its styles are sheets, which the policy allows. */
import { autocompletion, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { yaml } from "@codemirror/lang-yaml";
import { bracketMatching, HighlightStyle, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { offersAt } from "./yaml_complete";

export interface Mark { from: number; to: number; text: string }
export interface EditorOptions {
    text: string;
    /* What it is called, for who cannot see it. */
    label: string;
    onChange: (text: string) => void;
    onSubmit: () => void;
}
export interface Editor {
    mark: (marks: Mark[]) => void;
    goTo: (at: number) => void;
    setText: (text: string) => void;
    end: () => void;
}

const THEME = EditorView.theme({
    "&": { color: "var(--text)", backgroundColor: "var(--raised)", border: "1px solid var(--line)", borderRadius: "var(--r)", fontSize: "0.92rem" },
    "&.cm-focused": { outline: "2px solid var(--accent)" },
    ".cm-scroller": { fontFamily: "var(--mono)", lineHeight: "1.5", maxHeight: "70vh" },
    ".cm-content, .cm-gutter": { minHeight: "18rem" },
    ".cm-content": { caretColor: "var(--text)" },
    ".cm-cursor": { borderLeftColor: "var(--text)" },
    ".cm-gutters": { backgroundColor: "var(--sunk)", color: "var(--soft)", borderRight: "1px solid var(--line)" },
    ".cm-activeLine": { backgroundColor: "color-mix(in srgb, var(--chosen) 35%, transparent)" },
    "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { background: "var(--chosen)" },
    ".cm-tooltip": { backgroundColor: "var(--raised)", color: "var(--text)", border: "1px solid var(--line)" },
    ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "2px 8px" },
    ".cm-tooltip.cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--chosen)", color: "var(--text)" },
    ".cm-completionMatchedText": { textDecoration: "none", fontWeight: "700" },
    ".cm-completionDetail": { color: "var(--soft)" },
    ".cm-diagnostic": { borderLeftColor: "var(--bad)", overflowWrap: "anywhere" },
    ".cm-lintRange-error": { backgroundImage: "none", textDecoration: "underline wavy var(--bad)" },
    ".cm-lint-marker-error": { content: "none", backgroundColor: "var(--bad)", borderRadius: "50%", width: "0.7em", height: "0.7em", marginTop: "0.2em" },
});
const COLOURS = HighlightStyle.define([
    { tag: tags.definition(tags.propertyName), color: "var(--link)" },
    { tag: [tags.string, tags.special(tags.string)], color: "var(--good)" },
    { tag: [tags.lineComment, tags.meta], color: "var(--soft)" },
    { tag: tags.keyword, color: "var(--warn)" },
]);

/* Where nothing is typed yet, keys are offered when they are asked for. */
function complete(c: CompletionContext): CompletionResult | null {
    const found = offersAt(c.state.doc.toString(), c.pos);
    if (!found || (!c.explicit && found.isKey && found.from === c.pos)) return null;
    return { from: found.from, validFor: /^\w*$/, options: found.of.map((o) => ({ label: o.text.replace(/: $/, ""), apply: o.text, detail: o.detail })) };
}

function extensions(o: EditorOptions) {
    const submit = { key: "Mod-Enter", run: () => { o.onSubmit(); return true; } };
    return [
        lineNumbers(), lintGutter(), history(), drawSelection(), highlightActiveLine(), bracketMatching(), indentUnit.of("  "),
        yaml(), syntaxHighlighting(COLOURS), THEME, EditorView.lineWrapping, EditorView.contentAttributes.of({ "aria-label": o.label }),
        autocompletion({ override: [complete], selectOnOpen: false, icons: false }), // enter is a new line, unless one was chosen
        keymap.of([submit, ...completionKeymap, ...defaultKeymap, ...historyKeymap]),
        EditorView.updateListener.of((u) => { if (u.docChanged) o.onChange(u.state.doc.toString()); }),
    ];
}

export function startEditor(host: HTMLElement, o: EditorOptions): Editor {
    const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
    const view = new EditorView({ state: EditorState.create({ doc: o.text, extensions: extensions(o) }), parent: root, root });
    return {
        mark: (marks) => {
            const end = view.state.doc.length;
            view.dispatch(setDiagnostics(view.state, marks.map((m) =>
                ({ from: Math.min(m.from, end), to: Math.min(m.to, end), severity: "error" as const, message: m.text }))));
        },
        goTo: (at) => {
            view.dispatch({ selection: { anchor: Math.min(at, view.state.doc.length) }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
            view.focus();
        },
        setText: (text) => view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } }),
        end: () => view.destroy(),
    };
}
