/* The YAML editor as a part of a page: a plain text field until it has come, or where it does not come. */
import { useEffect, useRef, useState } from "preact/hooks";
import { toast } from "../talk/toasts";
import "./editor.css";
import type { Mistake } from "../../state/mistakes";

type Lazy = typeof import("./yaml_lazy");
type Editor = import("./yaml_lazy").Editor;

export interface YamlProps {
    label: string;
    text: string;
    onChange: (text: string) => void;
    onSubmit: () => void;
    mistakes: Mistake[];
}

/* What it begins with is `text`; what is typed goes up by onChange. */
export function Yaml({ label, text, onChange, onSubmit, mistakes }: YamlProps) {
    const host = useRef<HTMLDivElement>(null), editor = useRef<Editor | null>(null), now = useRef({ text, onChange, onSubmit });
    const [lazy, setLazy] = useState<Lazy | null>(null), [isPlain, setPlain] = useState(false);
    now.current = { text, onChange, onSubmit };
    useEffect(() => {
        import("./yaml_lazy").then(setLazy, () => {
            setPlain(true);
            toast("The editor could not be loaded: this is a plain field.", true);
        });
    }, []);
    useEffect(() => {
        if (!lazy) return;
        const mine = editor.current = lazy.startEditor(host.current!, { text: now.current.text, label,
            onChange: (t) => now.current.onChange(t), onSubmit: () => now.current.onSubmit() });
        return () => {
            editor.current = null;
            mine.end();
        };
    }, [lazy]);
    const places = lazy ? mistakes.map((m) => ({ ...m, ...lazy.placeOf(m, text) })).sort((a, b) => a.from - b.from) : [];
    useEffect(() => editor.current?.mark(places.map((p) => ({ from: p.from, to: p.to, text: p.text }))), [lazy, mistakes]);
    const lineAt = (at: number) => text.slice(0, at).split("\n").length;
    return <>
        {lazy ? <div ref={host} class="yaml" /> : <textarea class="yaml" aria-label={label} value={text} spellcheck={false} aria-busy={!isPlain}
            rows={16} onInput={(e) => onChange(e.currentTarget.value)} />}
        {places.length > 0 && <ul class="mistakes" aria-label="Mistakes">{places.map((p, i) => <li key={i}>
            <button type="button" onClick={() => editor.current?.goTo(p.from)}>line {lineAt(p.from)}</button>{" "}
            {p.path && <code>{p.path}</code>} {p.text}</li>)}</ul>}
    </>;
}
