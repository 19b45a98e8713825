/* Many curves on uPlot: it has the axes, the cursor and the zoom by dragging; the lines are ours (draw.ts). */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { number } from "../ui/format";
import { cssColour, isDark } from "../ui/dark";
import "./charts.css";
import { ranges, xText, type Shape } from "./curves_picture";
import { drawCurves, type Curve } from "./draw";
import { areSame } from "./layers";
import { nearest } from "./sample";
import { scale, toPixel, type Scale } from "./scales";
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
        this.plot.over.addEventListener("mousemove", (e) => this.point(e));
        this.plot.over.addEventListener("mouseleave", () => this.leave());
        this.plot.over.addEventListener("click", () => this.pick());
        this.watch = new ResizeObserver(() => this.plot.setSize(this.size()));
        this.watch.observe(box);
    }

    private size(): { width: number; height: number } {
        return { width: Math.max(120, this.box.clientWidth), height: this.props.height ?? 320 };
    }

    private axis(side: "x" | "y"): uPlot.Axis {
        const isX = side === "x";
        const kind = () => ((isX ? this.props.logX : this.props.logY) ? "log" : isX && this.props.x === "clock" ? "time" : "linear");
        return {
            scale: side, stroke: () => cssColour("--soft"), grid: { stroke: () => cssColour("--line"), width: 1 },
            ticks: { show: false }, font: "12px system-ui, sans-serif", size: isX ? 32 : 64, filter: (_, splits) => splits,
            splits: (u, _, lo, hi) => ticks(scale(kind(), lo, hi, 0, 1), Math.max(2, Math.floor((isX ? u.width : u.height) / (isX ? 90 : 40))),
                -new Date(lo).getTimezoneOffset() || 0),
            values: (_, splits) => splits.map((v) => (isX ? xText(this.props.x, v, this.range.x[1] - this.range.x[0]) : number(v))),
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

    private found: Curve | null = null;

    private point(e: MouseEvent): void {
        const [x, y] = this.scales(1);
        const b = this.plot.bbox, at = { x: e.offsetX + b.left / devicePixelRatio, y: e.offsetY + b.top / devicePixelRatio };
        const value = this.plot.posToVal(e.offsetX, "x");
        let best = NEAR, tip: { text: string; left: number; top: number } | null = null;
        this.found = null;
        for (const c of this.props.curves) {
            const i = nearest(c.points.x, value);
            if (i < 0) continue;
            const [px, py] = [toPixel(x, c.points.x[i]!), toPixel(y, c.points.y[i]!)];
            const d = Math.hypot(px - at.x, py - at.y);
            if (!(d < best)) continue;
            best = d;
            this.found = c;
            tip = { text: `${c.label} · ${xText(this.props.x, c.points.x[i]!, 0)} · ${number(c.points.y[i]!)}`, left: px, top: py };
        }
        this.tell(tip);
        this.props.onHover(this.found?.id ?? null);
    }

    private leave(): void {
        this.found = null;
        this.tell(null);
        this.props.onHover(null);
    }

    private pick(): void {
        if (this.found) this.props.onPick?.(this.found.id);
    }

    show(props: CurvesProps): void {
        this.props = props;
        const of = [props.zoom?.[0], props.zoom?.[1], ...this.behind().flatMap((c) => [c.points, c.raw, c.band, c.colour, c.layer, c.dash.join()])];
        if (areSame(of, this.behindOf)) return this.drawFront();
        this.behindOf = of;
        this.range = ranges(props);
        this.plot.setData([[0, 1], [null, null]]);
    }

    end(): void {
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
        mine.show(props);
        return () => mine.end();
    }, [props.x, props.logX, props.logY, props.height, dark]);
    useLayoutEffect(() => plot.current?.show(props));
    return <div class="chart">
        <div ref={box} class="chart-box" role="img" aria-label={props.summary} />
        {tip && <Tip left={tip.left} top={tip.top} width={box.current?.clientWidth ?? 0} lines={[tip.text]} />}
    </div>;
}
