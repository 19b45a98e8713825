/* Which rows of a long list are in sight: only those are in the document, between two gaps as high as the rest. */
import { elementScroll, observeElementOffset, observeElementRect, Virtualizer } from "@tanstack/virtual-core";
import type { RefObject } from "preact";
import { useLayoutEffect, useState } from "preact/hooks";

export interface Sight {
    first: number;
    /* One past the last. */
    end: number;
    above: number;
    below: number;
    toTop: () => void;
}

const BEYOND = 6; // rows drawn above and below what is in sight

/* All rows are `height` CSS pixels high. */
export function useSight(box: RefObject<HTMLElement | null>, count: number, height: number): Sight {
    const [, draw] = useState(0);
    const options = {
        count, overscan: BEYOND, getScrollElement: () => box.current, estimateSize: () => height,
        observeElementRect, observeElementOffset, scrollToFn: elementScroll, onChange: () => draw((n) => n + 1),
    };
    const [list] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(options));
    list.setOptions(options);
    useLayoutEffect(() => list._didMount(), [list]);
    useLayoutEffect(() => list._willUpdate());
    useLayoutEffect(() => list.measure(), [list, height]); // it would keep to the height that it knew first
    const rows = list.getVirtualItems(), first = rows[0]?.index ?? 0, end = (rows.at(-1)?.index ?? -1) + 1;
    return { first, end, above: first * height, below: (count - end) * height, toTop: () => list.scrollToOffset(0) };
}
