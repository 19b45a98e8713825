/* How the list looks: the height of rows, columns that stay at the left, numbers in colours. */
import { keepRowHeight, rowHeight, ROWS, type RowHeight } from "../../state/kept";
import { PINNED_MOST } from "../../state/list_address";
import { Opens } from "../../ui/table/choices";
import { shown } from "../../ui/words/name";
import { toast } from "../../ui/talk/toasts";
import type { Shown } from "./columns";

const HEIGHTS: Record<RowHeight, string> = { SHORT: "Short", MEDIUM: "Medium", TALL: "Tall", EXTRA_TALL: "Extra tall" };

export const unkept = (e: Error): void => toast(`Shown, but not kept for the next time: ${e.message}`, true);

export interface LookProps {
    pinned: number;
    heat: boolean;
    unheated: readonly string[];
    /* Those that can be coloured. */
    heatable: readonly Shown[];
    set: (to: { pinned?: number; heat?: boolean; unheated?: string[] }) => void;
}

function Heat({ heat, unheated, heatable, set }: LookProps) {
    return <>
        <label><input type="checkbox" checked={heat} onChange={() => set({ heat: !heat })} /> Numbers in colours</label>
        {heat && heatable.map((c) => <label key={c.key}><input type="checkbox" checked={!unheated.includes(c.sort)}
            onChange={() => set({ unheated: unheated.includes(c.sort) ? unheated.filter((n) => n !== c.sort) : [...unheated, c.sort] })} /> <bdi>{shown(c.kind.title)}</bdi></label>)}
        {heat && <p class="soft">{heatable.length ? "The lightest is the best of all that match. Of the metric that an experiment searches by this is the lowest or the highest, as its configuration says; of other metrics it is the highest." : "No column that is shown has a metric."}</p>}
    </>;
}

export function LookChoice(p: LookProps) {
    return <Opens summary="Look">
        <div class="pick-list" role="group" aria-label="Look">
            <label>Rows <select value={rowHeight.value} onChange={(e) => { keepRowHeight(e.currentTarget.value as RowHeight).catch(unkept); }}>
                {Object.keys(ROWS).map((h) => <option key={h} value={h}>{HEIGHTS[h as RowHeight]}</option>)}</select></label>
            <label>Columns that stay at the left <select value={p.pinned} onChange={(e) => p.set({ pinned: Number(e.currentTarget.value) })}>
                {Array.from({ length: PINNED_MOST + 1 }, (_, n) => <option key={n} value={n}>{n || "none"}</option>)}</select></label>
            <Heat {...p} />
        </div>
    </Opens>;
}
