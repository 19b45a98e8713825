/* Words beside a point of a chart, and never beside the chart: the further right the point is, the more of them lies left of it. */

export interface TipProps {
    /* CSS pixels within the chart, which has so many across. */
    left: number;
    top: number;
    width: number;
    /* Each a line; one alone is cut where it is too long. */
    lines: string[];
}

/* How much of the words lies left of the point, in percent of their width. */
export function leftOf(left: number, width: number): number {
    return width > 0 ? Math.round(100 * Math.min(1, Math.max(0, left / width))) : 50;
}

export function Tip({ left, top, width, lines }: TipProps) {
    const at = Math.min(width, Math.max(0, left));
    return <div class="chart-tip" style={{ left: `${at}px`, top: `${top}px`, transform: `translate(-${leftOf(at, width)}%, calc(-100% - 10px))` }}>
        {lines.map((l, i) => <div key={i}>{l}</div>)}</div>;
}
