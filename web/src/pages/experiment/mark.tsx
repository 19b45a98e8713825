/* A part of an axis is marked by its two ends: for who has no pointer, or wants just these numbers. */
import { useState } from "preact/hooks";
import type { Axis } from "../../charts/axes";
import { brushed, unbrushed, type Brush } from "../../charts/brush";
import { FormDialog } from "../../ui/talk/dialog";
import { shown } from "../../ui/words/name";

/* What was typed, once it is whole: "1e-4" is no number yet at "1e-". */
export function numberTyped(text: string): number {
    const n = text.trim() ? Number(text) : NaN;
    if (!Number.isFinite(n)) throw new Error(`"${text}" is no number: write one as 0.001, 1e-3 or -3`);
    return n;
}

interface MarkProps { axis: Axis; brushes: Brush[]; set: (brushes: Brush[]) => void; close: () => void }

function End({ axis: a, label, at, set }: { axis: Axis; label: string; at: string; set: (at: string) => void }) {
    if (a.kind === "category") return <label>{label} <select value={at} onChange={(e) => set(e.currentTarget.value)}>
        {a.categories.map((c, i) => <option key={c} value={i}>{shown(c) || "none"}</option>)}</select></label>;
    return <label>{label} <input required autoComplete="off" value={at} onInput={(e) => set(e.currentTarget.value)} /></label>;
}

export function MarkDialog({ axis, brushes, set, close }: MarkProps) {
    const was = brushes.find((b) => b.name === axis.name), [lo, setLo] = useState(String(was?.lo ?? axis.lo)), [hi, setHi] = useState(String(was?.hi ?? axis.hi));
    const clear = () => {
        set(unbrushed(brushes, axis.name));
        close();
    };
    return <FormDialog title={`Mark a part of ${shown(axis.name)}`} button="Mark" save={async () => set(brushed(brushes, { name: axis.name, lo: numberTyped(lo), hi: numberTyped(hi) }))} close={close}>
        <End axis={axis} label="From" at={lo} set={setLo} />
        <End axis={axis} label="To" at={hi} set={setHi} />
        {was && <p><button type="button" onClick={clear}>Take the mark away</button></p>}
    </FormDialog>;
}
