/* Slot use over time, for administrators: bars of slot hours by pool, workspace, user or label, and the same as a table. */
import { call } from "../../api/client";
import { Canvas } from "../../charts/canvas";
import { colourOf } from "../../charts/palette";
import type { Pen } from "../../charts/pen";
import { PictureButtons } from "../../charts/picture";
import { scale, toPixel } from "../../charts/scales";
import { ticks } from "../../charts/ticks";
import { useLive } from "../../state/live";
import { query, setQuery } from "../../state/router";
import { cssColour, isDark } from "../../ui/dark";
import { number } from "../../ui/words/format";
import { Grid } from "../../ui/table/grid";
import { Name, shown } from "../../ui/words/name";
import { csv, saveAs } from "../../ui/words/save";
import "../../ui/parts.css";
import { Problem } from "../problem";
import { askedOf, sharesOf, WAYS, type Entry, type Share } from "./use_data";

const HEIGHT = 220, LEFT = 56, BELOW = 24, LIVE_MS = 60_000, HOUR_S = 3600;

function draw(pen: Pen, width: number, entries: readonly Entry[], shares: readonly Share[]): void {
    const most = Math.max(...entries.map((_, i) => shares.reduce((n, s) => n + s.hours[i]!, 0)), 1e-6);
    const y = scale("linear", 0, most, HEIGHT, 8), step = (width - LEFT - 8) / entries.length;
    pen.font = "12px system-ui, sans-serif";
    pen.fillStyle = cssColour("--soft");
    for (const t of ticks(y, 4)) {
        pen.globalAlpha = 0.4;
        pen.fillRect(LEFT, toPixel(y, t), width - LEFT - 8, 1);
        pen.globalAlpha = 1;
        pen.fillText(String(+t.toPrecision(6)), 4, toPixel(y, t) + 4);
    }
    const every = Math.ceil(entries.length / Math.max(1, Math.floor((width - LEFT) / 90)));
    entries.forEach((e, i) => {
        let below = 0;
        shares.forEach((s, k) => {
            const bottom = toPixel(y, below), top = toPixel(y, below += s.hours[i]!);
            pen.fillStyle = colourOf(k, isDark.value);
            pen.fillRect(LEFT + i * step + 1, top, Math.max(1, step - 2), bottom - top);
        });
        pen.fillStyle = cssColour("--soft");
        if (i % every === 0) pen.fillText(e.periodStart, Math.min(LEFT + i * step, width - 74), HEIGHT + 16);
    });
}

function Shares({ shares, by }: { shares: Share[]; by: string }) {
    const all = shares.reduce((n, s) => n + s.total, 0);
    const rows = shares.map((s, i) => ({ ...s, colour: colourOf(i, isDark.value) }));
    return <Grid name="Slot use" rows={rows} keyOf={(s) => s.key} none="Nothing had a slot then." columns={[
        { head: by, cell: (s) => <><span aria-hidden="true" style={{ color: s.colour }}>■</span> <Name text={s.key} /></> },
        { head: "slot hours", cell: (s) => number(s.total) }, { head: "share", cell: (s) => (by === "label" || !all ? "" : `${(100 * s.total / all).toFixed(1)} %`) }]} />;
}

export function UsePage() {
    const asked = askedOf(query.value, new Date()), { groupBy, after, before, by } = asked, field = groupBy === "day" ? "date" : "month";
    const period = groupBy === "day" ? "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_DAILY" : "RESOURCE_ALLOCATION_AGGREGATION_PERIOD_MONTHLY";
    const live = useLive(`${groupBy} ${after} ${before}`, "", (signal) => call("GET /api/v1/resources/allocation/aggregated", { query: { startDate: after, endDate: before, period }, signal }), () => LIVE_MS);
    const entries = live.data?.resourceEntries ?? [], shares = sharesOf(entries, by), hours = entries.reduce((n, e) => n + e.seconds, 0) / HOUR_S;
    const save = () => saveAs(`slot_use_${after}_${before}.csv`, csv([groupBy, by, "slot_hours"], entries.flatMap((e) => Object.entries(e[WAYS[by]] as Record<string, number>).map(([key, s]) => [e.periodStart, key, s / HOUR_S]))));
    return <>
        <h1>Use over time</h1>
        <section class="panel stacked" aria-label="Use over time">
            <div class="head">
                <label class="quiet">Each <select value={groupBy} onChange={(e) => setQuery({ groupBy: e.currentTarget.value, after: null, before: null })}><option value="day">day</option><option value="month">month</option></select></label>
                <label class="quiet">From <input type={field} value={after} max={before} onChange={(e) => setQuery({ after: e.currentTarget.value })} /></label>
                <label class="quiet">To <input type={field} value={before} min={after} onChange={(e) => setQuery({ before: e.currentTarget.value })} /></label>
                <label class="quiet">By <select value={by} onChange={(e) => setQuery({ by: e.currentTarget.value })}>{Object.keys(WAYS).map((w) => <option key={w} value={w}>{w}</option>)}</select></label>
                <span class="row push"><button type="button" title={`det resources aggregated ${after} ${before}${groupBy === "month" ? " --monthly" : ""}`} onClick={save}>CSV</button>
                    <PictureButtons name={`slot_use_${after}_${before}`} of={() => ({ title: `Slot hours by ${by}, ${after} to ${before}`, height: HEIGHT + BELOW, draw: (pen, w) => draw(pen, w, entries, shares) })} /></span></div>
            <Problem error={live.error} what="Slot use" />
            {live.data && <><p class="soft" role="status">{number(hours)} slot hours, days of UTC{by === "label" ? "; one with several labels counts for each" : ""}</p>
                <Canvas height={HEIGHT + BELOW} label={`Slot hours by ${by}: ${shares.map((s) => `${shown(s.key)} ${number(s.total)}`).join(", ") || "none"}`} of={[entries, shares]} behind={(pen, w) => draw(pen, w, entries, shares)} />
                <Shares shares={shares} by={by} /></>}
        </section>
    </>;
}
