/* Trials as dots between any two of their hyperparameters and metrics, coloured by the metric. */
import { useRef, useState } from "preact/hooks";
import { cssColour, isDark } from "../ui/dark";
import { number, value } from "../ui/format";
import { axisPixel, axisScale, type Axis } from "./axes";
import { Canvas } from "./canvas";
import { heat } from "./palette";
import type { Row } from "./parallel";
import { share, toPixel, type Scale } from "./scales";
import { ticks } from "./ticks";

export interface ScatterProps {
    x: Axis;
    y: Axis;
    /* What colours the dots. */
    by: Axis;
    rows: Row[];
    smallerIsBetter: boolean;
    hover: number | null;
    onHover: (id: number | null) => void;
    onPick: (id: number) => void;
    summary: string;
}

const HEIGHT = 360, LEFT = 64, BOTTOM = 32, EDGE = 14, NEAR = 16;

function label(a: Axis, v: number): string {
    return a.kind === "category" ? (a.categories[v] ?? "").slice(0, 12) : number(v);
}

function frame(ctx: CanvasRenderingContext2D, p: ScatterProps, xs: Scale, ys: Scale, width: number): void {
    ctx.strokeStyle = cssColour("--line");
    ctx.fillStyle = cssColour("--soft");
    ctx.font = "12px system-ui, sans-serif";
    ctx.lineWidth = 1;
    for (const v of ticks(xs, Math.max(2, Math.floor(width / 90)))) {
        const x = toPixel(xs, v);
        ctx.strokeRect(x, EDGE, 0, HEIGHT - BOTTOM - EDGE);
        ctx.textAlign = "center";
        ctx.fillText(label(p.x, v), x, HEIGHT - BOTTOM + 16);
    }
    for (const v of ticks(ys, 7)) {
        const y = toPixel(ys, v);
        ctx.strokeRect(LEFT, y, width - LEFT - EDGE, 0);
        ctx.textAlign = "right";
        ctx.fillText(label(p.y, v), LEFT - 6, y + 4);
    }
}

export function Scatter(p: ScatterProps) {
    const width = useRef(0);
    const [found, setFound] = useState<{ row: Row; x: number; y: number } | null>(null);
    const scales = (w: number): [Scale, Scale] => [axisScale(p.x, LEFT + EDGE, w - 2 * EDGE), axisScale(p.y, HEIGHT - BOTTOM - EDGE, 2 * EDGE)];
    const place = (r: Row, [xs, ys]: [Scale, Scale]) => [axisPixel(p.x, xs, r.values[p.x.name]), axisPixel(p.y, ys, r.values[p.y.name])] as const;
    const draw = (ctx: CanvasRenderingContext2D, w: number) => {
        width.current = w;
        const both = scales(w), by = axisScale(p.by, 0, 1), dark = isDark.value;
        frame(ctx, p, ...both, w);
        for (const r of [...p.rows].sort((a, b) => Number(a.id === p.hover) - Number(b.id === p.hover))) {
            const [x, y] = place(r, both), v = r.values[p.by.name];
            if (!Number.isFinite(x) || !Number.isFinite(y)) continue;
            const s = typeof v === "number" ? share(by, v) : NaN;
            ctx.beginPath();
            ctx.arc(x, y, r.id === p.hover ? 8 : 5, 0, 2 * Math.PI);
            ctx.fillStyle = heat(p.smallerIsBetter ? 1 - s : s, dark);
            ctx.fill();
            ctx.strokeStyle = cssColour(r.id === p.hover ? "--text" : "--soft");
            ctx.lineWidth = r.id === p.hover ? 2 : 1;
            ctx.stroke();
        }
    };
    const onMove = (x: number, y: number) => {
        const both = scales(width.current);
        let best = NEAR, hit: { row: Row; x: number; y: number } | null = null;
        for (const row of p.rows) {
            const [px, py] = place(row, both), d = Math.hypot(px - x, py - y);
            if (d < best) [best, hit] = [d, { row, x: px, y: py }];
        }
        setFound(hit);
        p.onHover(hit?.row.id ?? null);
    };
    const leave = () => { setFound(null); p.onHover(null); };
    const names = [...new Set([p.x.name, p.y.name, p.by.name])];
    return <div class="chart">
        <Canvas height={HEIGHT} label={p.summary} draw={draw} onMove={onMove} onLeave={leave} onUp={() => found && p.onPick(found.row.id)} />
        {found && <div class="chart-tip" style={{ left: `${found.x}px`, top: `${found.y}px` }}>
            trial {found.row.id}{names.map((n) => ` · ${n} ${value(found.row.values[n])}`).join("")}</div>}
    </div>;
}
