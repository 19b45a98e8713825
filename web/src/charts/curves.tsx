/*
 * Many curves on uPlot: it has the axes, the cursor and the zoom by dragging; the lines are ours (draw.ts). With shift a drag
 * moves what is seen along, as a wheel does sideways; keys do all of it too.
 */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { number, numbers } from "../ui/words/format";
import { cssColour, isDark } from "../ui/dark";
import "./charts.css";
import { ranges, xText, xTexts, type Shape } from "./curves_picture";
import { drawCurves, type Curve } from "./draw";
import { roomFor } from "./frame";
import { areSame } from "./layers";
import { nearest } from "./sample";
import { isRange, narrowed, panned, scale, toPixel, type Range, type Scale } from "./scales";
import { ticks } from "./ticks";
import { Tip } from "./tip";

export interface CurvesProps extends Shape {
    onZoom: (range: [number, number] | null) => void;
    onHover: (id: number | null) => void;
    onPick?: (id: number) => void;
    /* What is shown, in words: for who cannot see it. */
    summary: string;
    height?: number;
}

const NEAR = 24; // CSS pixels from a point at which it counts as pointed at
const STEP = 0.25, CLOSER = 2; // of a key: the share by which what is seen moves, and how much narrower it gets
const REST_MS = 150; // after which a wheel has come to rest
const KEYS_WORDS = "Arrow keys go from point to point and from curve to curve, Enter chooses the curve; plus, minus and 0 zoom, shift with an arrow moves what is seen.";

class Plot {
    private readonly plot: uPlot;
    private readonly watch: ResizeObserver;
    /* The curves in front, over uPlot's canvas: they alone change while the pointer goes over the curves. */
    private readonly front = document.createElement("canvas").getContext("2d")!;
    private range: ReturnType<typeof ranges>;
    private behindOf: unknown[] = [];

    constructor(private readonly box: HTMLElement, private props: CurvesProps,
        private readonly tell: (tip: { text: string; left: number; top: number } | null) => void) {
        this.range = ranges(props);
        this.plot = new uPlot(this.options(), [[0, 1], [null, null]], box);
        this.front.canvas.className = "chart-front";
        this.plot.ctx.canvas.after(this.front.canvas);
        this.plot.over.addEventListener("mousedown", (e) => this.drag(e), true);
        this.plot.over.addEventListener("wheel", (e) => this.wheel(e), { passive: false });
        this.plot.over.addEventListener("mousemove", (e) => this.point(e));
        this.plot.over.addEventListener("mouseleave", () => this.leave());
        this.plot.over.addEventListener("click", () => this.pick());
        this.watch = new ResizeObserver(() => this.resized());
        this.watch.observe(box);
    }

    private size(): { width: number; height: number } {
        return { width: Math.max(120, this.box.clientWidth), height: this.props.height ?? 320 };
    }

    /* An observer tells of the size that there is, too: for that nothing is drawn again. */
    private resized(): void {
        const size = this.size();
        if (size.width !== this.plot.width || size.height !== this.plot.height) this.plot.setSize(size);
    }

    private axis(side: "x" | "y"): uPlot.Axis {
        const isX = side === "x";
        const kind = () => ((isX ? this.props.logX : this.props.logY) ? "log" : isX && this.props.x === "clock" ? "time" : "linear");
        return {
            scale: side, stroke: () => cssColour("--soft"), grid: { stroke: () => cssColour("--line"), width: 1 },
            ticks: { show: false }, font: "12px system-ui, sans-serif", size: isX ? 32 : (_, texts) => roomFor(texts ?? []), filter: (_, splits) => splits,
            splits: (u, _, lo, hi) => ticks(scale(kind(), lo, hi, 0, 1), Math.max(2, Math.floor((isX ? u.width : u.height) / (isX ? 90 : 40))),
                -new Date(lo).getTimezoneOffset() || 0),
            values: (_, splits) => (isX ? xTexts(this.props.x, splits, this.range.x[1] - this.range.x[0]) : numbers(splits)),
        };
    }

    private options(): uPlot.Options {
        return {
            ...this.size(), legend: { show: false },
            scales: {
                x: { time: false, distr: this.props.logX ? 3 : 1, range: () => this.range.x },
                y: { distr: this.props.logY && this.range.y[0] > 0 ? 3 : 1, range: () => this.range.y },
            },
            axes: [this.axis("x"), this.axis("y")],
            series: [{}, { scale: "y" }],
            cursor: { points: { show: false }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => { this.props.onZoom(null); return null; } } },
            hooks: { draw: [(u) => this.draw(u)], setSelect: [(u) => this.select(u)] },
        };
    }

    private scales(ratio: number): [Scale, Scale] {
        const b = this.plot.bbox, f = ratio / devicePixelRatio;
        const { x, y } = this.range;
        return [scale(this.props.logX ? "log" : "linear", x[0], x[1], b.left * f, (b.left + b.width) * f),
            scale(this.props.logY ? "log" : "linear", y[0], y[1], (b.top + b.height) * f, b.top * f)];
    }

    /* What lies behind, and what is in front anew. */
    private draw(u: uPlot): void {
        if (!this.plot) return; // the first time is from within uPlot's constructor; show() follows
        drawCurves(u.ctx, this.behind(), ...this.scales(devicePixelRatio), devicePixelRatio, cssColour("--idle"));
        [this.front.canvas.width, this.front.canvas.height] = [u.ctx.canvas.width, u.ctx.canvas.height];
        this.drawFront();
    }

    private drawFront(): void {
        this.front.clearRect(0, 0, this.front.canvas.width, this.front.canvas.height);
        drawCurves(this.front, this.props.curves, ...this.scales(devicePixelRatio), devicePixelRatio, cssColour("--idle"), ["front"]);
    }

    private behind(): Curve[] {
        return this.props.curves.map((c) => (c.layer === "front" ? { ...c, layer: "back" } : c));
    }

    private select(u: uPlot): void {
        if (u.select.width < 4) return;
        const [a, b] = [u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")];
        u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        this.props.onZoom([Number(a.toPrecision(6)), Number(b.toPrecision(6))]);
    }

    /* What is seen at this moment of a movement; the address has it when that has come to its end. */
    private seenAt(range: Range): void {
        if (!isRange(range)) return;
        this.props = { ...this.props, zoom: range };
        this.range = ranges(this.props);
        this.behindOf = [];
        this.plot.setData([[0, 1], [null, null]]);
    }

    private width(): number {
        return Math.max(1, this.plot.bbox.width / devicePixelRatio);
    }

    private drag(e: MouseEvent): void {
        if (!e.shiftKey || e.button !== 0) return;
        e.stopImmediatePropagation(); // it marks no part to zoom into
        e.preventDefault();
        const begun: Range = this.range.x, stop = this.dragging = new AbortController(), { signal } = stop;
        this.isMoving = true;
        addEventListener("mousemove", (m) => this.seenAt(panned(begun, (e.clientX - m.clientX) / this.width(), this.props.logX)), { signal });
        addEventListener("mouseup", () => {
            stop.abort();
            this.rest();
        }, { signal });
    }

    private isMoving = false;
    private dragging: AbortController | null = null;
    private resting: ReturnType<typeof setTimeout> | undefined;

    private rest(): void {
        this.isMoving = false;
        if (this.props.zoom) this.props.onZoom(this.props.zoom);
    }

    /* Sideways, of what is zoomed into; up and down is the page's. */
    private wheel(e: WheelEvent): void {
        const by = Math.abs(e.deltaX) > Math.abs(e.deltaY) ? e.deltaX : e.shiftKey ? e.deltaY : 0;
        if (!by || !this.props.zoom) return;
        e.preventDefault();
        this.isMoving = true;
        this.seenAt(panned(this.range.x, by / this.width(), this.props.logX));
        clearTimeout(this.resting);
        this.resting = setTimeout(() => this.rest(), REST_MS);
    }

    private at = -1; // which point of `found` the keys are at

    /* Tells of one point, by its curve and its place in it. */
    private go(c: Curve | undefined, i: number): void {
        if (!c?.points.x.length) return;
        const [x, y] = this.scales(1), at = Math.min(c.points.x.length - 1, Math.max(0, i)), [px, py] = [c.points.x[at]!, c.points.y[at]!];
        [this.found, this.at] = [c, at];
        this.tell({ text: `${c.label} · ${xText(this.props.x, px, 0)} · ${number(py)}`, left: toPixel(x, px), top: toPixel(y, py) });
        this.props.onHover(c.id);
    }

    /* Whether the key meant something here. */
    key(e: KeyboardEvent): boolean {
        if (e.ctrlKey || e.altKey || e.metaKey) return false;
        const { curves, zoom, logX, onZoom, onPick } = this.props, now = this.found && curves.find((c) => c.id === this.found!.id), by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -1, ArrowDown: 1 }[e.key];
        const zoomTo = (r: Range) => { if (isRange(r)) onZoom(r); };
        if (by && e.shiftKey && e.key !== "ArrowUp" && e.key !== "ArrowDown") zoomTo(panned(zoom ?? this.range.x, by * STEP, logX));
        else if (by && !now) this.go(curves[0], nearest(curves[0]?.points.x ?? [], this.range.x[0]));
        else if (e.key === "ArrowLeft" || e.key === "ArrowRight") this.go(now!, Math.max(this.at, 0) + by!);
        else if (by) this.step(now!, by);
        else if (e.key === "+" || e.key === "=") zoomTo(narrowed(this.range.x, CLOSER, this.shareOfPoint(now), logX));
        else if (e.key === "-" && zoom) zoomTo(narrowed(zoom, 1 / CLOSER, 0.5, logX));
        else if (e.key === "0") onZoom(null);
        else if (e.key === "Enter" && now) onPick?.(now.id);
        else if (e.key === "Escape" && now) this.leave();
        else return false;
        return true;
    }

    /* To another curve, at the same place of the axis. */
    private step(now: Curve, by: number): void {
        const { curves } = this.props, next = curves[(curves.findIndex((c) => c.id === now.id) + by + curves.length) % curves.length];
        this.go(next, nearest(next?.points.x ?? [], now.points.x[Math.max(0, this.at)] ?? this.range.x[0]));
    }

    private shareOfPoint(now: Curve | null | undefined): number {
        const [x] = this.scales(1), s = now && this.at >= 0 ? (toPixel(x, now.points.x[this.at]!) - x.from) / (x.to - x.from) : NaN;
        return s >= 0 && s <= 1 ? s : 0.5;
    }

    private found: Curve | null = null;

    private point(e: MouseEvent): void {
        if (this.isMoving) return;
        const [x, y] = this.scales(1);
        const b = this.plot.bbox, at = { x: e.offsetX + b.left / devicePixelRatio, y: e.offsetY + b.top / devicePixelRatio };
        const value = this.plot.posToVal(e.offsetX, "x");
        let best = NEAR, tip: { text: string; left: number; top: number } | null = null;
        this.found = null;
        this.at = -1;
        for (const c of this.props.curves) {
            const i = nearest(c.points.x, value);
            if (i < 0) continue;
            const [px, py] = [toPixel(x, c.points.x[i]!), toPixel(y, c.points.y[i]!)];
            const d = Math.hypot(px - at.x, py - at.y);
            if (!(d < best)) continue;
            best = d;
            [this.found, this.at] = [c, i];
            tip = { text: `${c.label} · ${xText(this.props.x, c.points.x[i]!, 0)} · ${number(c.points.y[i]!)}`, left: px, top: py };
        }
        this.tell(tip);
        this.props.onHover(this.found?.id ?? null);
    }

    leave(): void {
        this.found = null;
        this.at = -1;
        this.tell(null);
        this.props.onHover(null);
    }

    private pick(): void {
        if (this.found) this.props.onPick?.(this.found.id);
    }

    show(props: CurvesProps): void {
        this.props = this.isMoving ? { ...props, zoom: this.props.zoom } : props;
        props = this.props;
        const of = [props.zoom?.[0], props.zoom?.[1], ...this.behind().flatMap((c) => [c.points, c.raw, c.band, c.star?.x, c.star?.y, c.colour, c.layer, c.dash.join()])];
        if (areSame(of, this.behindOf)) return this.drawFront();
        this.behindOf = of;
        this.range = ranges(props);
        this.plot.setData([[0, 1], [null, null]]);
    }

    end(): void {
        clearTimeout(this.resting);
        this.dragging?.abort();
        this.watch.disconnect();
        this.plot.destroy();
    }
}

export function Curves(props: CurvesProps) {
    const box = useRef<HTMLDivElement>(null);
    const plot = useRef<Plot | null>(null);
    const [tip, setTip] = useState<{ text: string; left: number; top: number } | null>(null);
    const dark = isDark.value;
    useLayoutEffect(() => {
        const mine = plot.current = new Plot(box.current!, props, setTip);
        return () => mine.end();
    }, [props.x, props.logX, props.logY, props.height, dark]);
    useLayoutEffect(() => plot.current?.show(props));
    const onKeyDown = (e: KeyboardEvent) => { if (plot.current?.key(e)) e.preventDefault(); };
    return <div class="chart" tabIndex={0} role="group" aria-label="The curves" aria-description={KEYS_WORDS} onKeyDown={onKeyDown} onBlur={() => plot.current?.leave()}>
        <div ref={box} class="chart-box" role="img" aria-label={props.summary} />
        <span class="hidden" role="status">{tip?.text}</span>
        {tip && <Tip left={tip.left} top={tip.top} width={box.current?.clientWidth ?? 0} lines={[tip.text]} />}
    </div>;
}
