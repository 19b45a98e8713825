/* A button that opens a list of things to tick; it closes on Escape and when the reader goes elsewhere. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import "./choices.css";
import { shown } from "../words/name";

export interface Choice<T> { value: T; text: string; isFixed?: boolean }
export interface ChoicesProps<T> {
    name: string;
    /* What the button says of what is ticked. */
    summary: string;
    of: Choice<T>[];
    ticked: readonly T[];
    set: (ticked: T[]) => void;
    /* Said below it. */
    note?: ComponentChildren;
    /* When the list is opened. */
    onOpen?: () => void;
}

export interface OpensProps { summary: string; title?: string; onOpen?: () => void; children: ComponentChildren }

const BESIDE_PX = 8;

/* What is opened lies within the window, also where its button is at the right edge. */
function comeInside(list: Element | null): void {
    if (!(list instanceof HTMLElement)) return;
    list.style.marginLeft = "";
    const beyond = list.getBoundingClientRect().right + BESIDE_PX - document.documentElement.clientWidth;
    if (beyond > 0) list.style.marginLeft = `${-beyond}px`;
}

/*
 * A button that opens what is in it, and closes as above: of a press elsewhere when it is over, for what is open may
 * hold up what is pressed, which must not move away from under the pointer. What was taken away by the press itself was in it.
 */
export function Opens({ summary, title, onOpen, children }: OpensProps) {
    const ref = useRef<HTMLDetailsElement>(null);
    useEffect(() => {
        let press: { isIn: boolean } | null = null;
        const isIn = (e: Event): boolean => e.target instanceof Node && (!!ref.current?.contains(e.target) || !e.target.isConnected);
        const leave = (e: Event) => { if (ref.current?.open && !(press ? press.isIn : isIn(e))) ref.current.open = false; };
        const on: Record<string, (e: Event) => void> = {
            pointerdown: (e) => { press = { isIn: isIn(e) }; },
            pointerup: () => { setTimeout(() => { press = null; }); }, // the click comes before that, where there is one
            pointercancel: () => { press = null; },
            click: leave,
            auxclick: leave, // of another button
            contextmenu: (e) => { leave(e); press = null; }, // a menu may keep the release to itself
            focusin: (e) => { if (ref.current?.open && !press && !isIn(e)) ref.current.open = false; },
        };
        for (const [kind, heard] of Object.entries(on)) document.addEventListener(kind, heard);
        return () => { for (const [kind, heard] of Object.entries(on)) document.removeEventListener(kind, heard); };
    }, []);
    const onKeyDown = (e: KeyboardEvent) => {
        if (e.key !== "Escape" || !ref.current?.open) return;
        ref.current.open = false;
        ref.current.querySelector("summary")!.focus();
    };
    return <details ref={ref} class="pick" onKeyDown={onKeyDown} onToggle={(e) => {
        if (!e.currentTarget.open) return;
        onOpen?.();
        comeInside(e.currentTarget.querySelector(".pick-list"));
    }}>
        <summary title={title}>{summary}</summary>
        {children}
    </details>;
}

export function Choices<T extends string | number>({ name, summary, of, ticked, set, note, onOpen }: ChoicesProps<T>) {
    const toggle = (value: T) => set(ticked.includes(value) ? ticked.filter((t) => t !== value) : [...ticked, value]);
    return <Opens summary={`${name}: ${shown(summary)}`} {...(onOpen ? { onOpen } : {})}>
        <fieldset class="pick-list"><legend class="hidden">{name}</legend>
            {of.map((c) => <label key={c.value}><input type="checkbox" checked={c.isFixed || ticked.includes(c.value)} disabled={c.isFixed}
                onChange={() => toggle(c.value)} /> <bdi>{shown(c.text)}</bdi></label>)}
            {!of.length && <p class="soft">There is none.</p>}
            {note}
        </fieldset>
    </Opens>;
}
