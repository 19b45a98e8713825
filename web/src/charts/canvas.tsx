/* A canvas as wide as its place, and one in front of it: drawn anew when what they show, their size or the theme changes. */
import { useEffect, useRef } from "preact/hooks";
import { isDark } from "../ui/dark";
import { Painter, type Layers } from "./layers";

type Pen = CanvasRenderingContext2D;

export interface CanvasProps extends Layers<Pen> {
    height: number;
    label: string;
    /* CSS pixels that it is wide at least, whatever its place is. */
    least?: number;
    /* Whether a finger on it scrolls the page; where dragging means something it must not. */
    scrolls?: boolean;
    onDown?: (x: number, y: number) => void;
    /* Also while a button is held, wherever the pointer is. */
    onMove?: (x: number, y: number) => void;
    onUp?: (x: number, y: number) => void;
    /* A finger that is lifted does not leave: what it pointed at stays to be read. One that scrolls the page does. */
    onLeave?: () => void;
    /* Whether the key meant something here. With it the picture is in a group that can have the focus; `keys` says which there are. */
    onKey?: (e: KeyboardEvent) => boolean;
    name?: string;
    keys?: string;
}

/* Emptied, for CSS pixels. */
function penOf(c: HTMLCanvasElement, width: number, height: number, ratio: number): Pen {
    const pen = c.getContext("2d")!;
    [c.width, c.height] = [Math.max(1, Math.round(width * ratio)), Math.round(height * ratio)];
    pen.scale(ratio, ratio);
    return pen;
}

export function Canvas(props: CanvasProps) {
    const ref = useRef<HTMLCanvasElement>(null), front = useRef<HTMLCanvasElement>(null);
    const latest = useRef(props), painter = useRef<Painter<Pen> | null>(null);
    latest.current = props;
    const paint = () => {
        const c = ref.current, p = latest.current;
        if (!c) return; // it has left the page, and its observer not heard of it yet
        const size = () => [c.clientWidth, latest.current.height, devicePixelRatio] as const;
        painter.current ??= new Painter<Pen>(() => penOf(c, ...size()), () => penOf(front.current!, ...size()));
        painter.current.paint(p, [...size(), isDark.value]);
    };
    const at = (e: PointerEvent): [number, number] => {
        const box = ref.current!.getBoundingClientRect();
        return [e.clientX - box.left, e.clientY - box.top];
    };
    void isDark.value;
    useEffect(paint);
    useEffect(() => {
        const watch = new ResizeObserver(paint);
        watch.observe(ref.current!);
        return () => watch.disconnect();
    }, []);
    return <div class="canvas-box" style={{ height: `${props.height}px`, ...(props.least ? { minWidth: `${props.least}px` } : {}) }}
        {...(props.onKey ? { role: "group" as const, tabIndex: 0, "aria-label": props.name, "aria-description": props.keys, onKeyDown: (e: KeyboardEvent) => { if (latest.current.onKey!(e)) e.preventDefault(); }, onBlur: () => latest.current.onLeave?.() } : {})}>
        <canvas ref={ref} class={props.scrolls ? "plain-canvas scrolls" : "plain-canvas"} role="img" aria-label={props.label}
            onPointerDown={(e) => { ref.current!.setPointerCapture(e.pointerId); props.onDown?.(...at(e)); }}
            onPointerMove={(e) => props.onMove?.(...at(e))}
            onPointerUp={(e) => props.onUp?.(...at(e))}
            onPointerCancel={() => props.onLeave?.()}
            onPointerLeave={(e) => { if (e.pointerType !== "touch") props.onLeave?.(); }} />
        {props.front && <canvas ref={front} class="canvas-front" aria-hidden="true" />}
    </div>;
}
