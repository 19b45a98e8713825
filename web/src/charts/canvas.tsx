/* A canvas as wide as its place, drawn anew when what it shows, its size or the theme changes. */
import { useEffect, useRef } from "preact/hooks";
import { isDark } from "../ui/dark";

export interface CanvasProps {
    height: number;
    label: string;
    /* In CSS pixels. */
    draw: (ctx: CanvasRenderingContext2D, width: number, height: number) => void;
    onDown?: (x: number, y: number) => void;
    /* Also while a button is held, wherever the pointer is. */
    onMove?: (x: number, y: number) => void;
    onUp?: (x: number, y: number) => void;
    onLeave?: () => void;
}

export function Canvas(props: CanvasProps) {
    const ref = useRef<HTMLCanvasElement>(null);
    const latest = useRef(props);
    latest.current = props;
    const paint = () => {
        const c = ref.current, { draw, height } = latest.current;
        if (!c) return; // it has left the page, and its observer not heard of it yet
        const width = c.clientWidth;
        const ratio = devicePixelRatio;
        c.width = Math.max(1, Math.round(width * ratio));
        c.height = Math.round(height * ratio);
        const ctx = c.getContext("2d")!;
        ctx.scale(ratio, ratio);
        draw(ctx, width, height);
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
    return <canvas ref={ref} class="plain-canvas" role="img" aria-label={props.label} style={{ height: `${props.height}px` }}
        onPointerDown={(e) => { ref.current!.setPointerCapture(e.pointerId); props.onDown?.(...at(e)); }}
        onPointerMove={(e) => props.onMove?.(...at(e))}
        onPointerUp={(e) => props.onUp?.(...at(e))}
        onPointerLeave={() => props.onLeave?.()} />;
}
