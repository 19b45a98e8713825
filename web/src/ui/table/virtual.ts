/* Which rows of a long list are in sight: only those are in the document, between two gaps as high as the rest. */
import { batch, useSignal, type ReadonlySignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

/* Signals: what reads them is drawn again as the reader scrolls, and the page around it is not. */
export interface Sight {
    first: ReadonlySignal<number>;
    /* One past the last. */
    end: ReadonlySignal<number>;
}

const BEYOND = 6; // rows drawn above and below what is in sight

/* Of `count` rows, each `height` CSS pixels high. */
export function inSight(top: number, boxHeight: number, count: number, height: number): [number, number] {
    const end = Math.min(count, Math.ceil((top + boxHeight) / height) + BEYOND);
    return [Math.max(0, Math.min(end, Math.floor(top / height)) - BEYOND), end];
}

export function useSight(box: RefObject<HTMLElement | null>, count: number, height: number): Sight {
    const first = useSignal(0), end = useSignal(0), rows = useRef({ count, height });
    rows.current = { count, height };
    const [look] = useState(() => () => {
        const b = box.current!, { count, height } = rows.current;
        batch(() => { [first.value, end.value] = inSight(b.scrollTop, b.clientHeight, count, height); });
    });
    useLayoutEffect(() => {
        const b = box.current!, watch = new ResizeObserver(look);
        watch.observe(b);
        b.addEventListener("scroll", look, { passive: true });
        return () => {
            watch.disconnect();
            b.removeEventListener("scroll", look);
        };
    }, []);
    useLayoutEffect(look, [count, height]);
    return { first, end };
}
