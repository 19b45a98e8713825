/* The head of a column that rows can be sorted by: up, down, not at all; with shift it is one more key. */
import type { ComponentChildren } from "preact";
import { placeOf, pressed, type SortKey } from "./sort";

export interface SortHeadProps {
    /* What the column is called as a key. */
    id: string;
    sort: readonly SortKey[];
    set: (sort: SortKey[]) => void;
    /* CSS pixels from the left where it stays when the others scroll. */
    left?: number;
    /* What it says, which may be cut: hovering has it whole. */
    title?: string;
    children: ComponentChildren;
}

const HOW = "Sort by this; with shift: also by this";

export function SortHead({ id, sort, set, left, title, children }: SortHeadProps) {
    const is = placeOf(sort, id), sign = is && (is.isDown ? "▼" : "▲");
    // One head only may say so: the first key, by whose column the rows are in order.
    return <th scope="col" class={left === undefined ? undefined : "stays"} style={left === undefined ? undefined : { left: `${left}px` }} aria-sort={is?.at === 0 ? (is.isDown ? "descending" : "ascending") : undefined}>
        <button type="button" title={title ? `${title}\n${HOW}` : HOW} onClick={(e) => set(pressed(sort, id, e.shiftKey))}>
            {children}{is && <span aria-hidden="true"> {sign}{sort.length > 1 ? is.at + 1 : ""}</span>}
            {is && is.at > 0 && <span class="hidden">, then by this, {is.isDown ? "descending" : "ascending"}</span>}</button></th>;
}
