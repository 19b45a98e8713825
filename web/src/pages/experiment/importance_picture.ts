/* How much each hyperparameter has to do with the metric, as bars in a file: on the page it is a table. */
import { cssColour } from "../../ui/dark";
import { count, number } from "../../ui/words/format";
import { shown } from "../../ui/words/name";
import type { Pen } from "../../charts/pen";
import { FONT, type Picture } from "../../charts/picture";
import type { Importance } from "../../charts/work/importance";

const LINE = 26, TOP = 8, NAMES = 240, WORDS = 330, NAME_MOST = 32, METRIC_MOST = 24;

/* What a larger value goes with; of categories and of what cannot be told nothing. */
export function goesWith(i: Importance, metric: string): string {
    return !i.isSigned || Number.isNaN(i.weight) ? "" : i.weight > 0 ? `a larger ${metric}` : `a smaller ${metric}`;
}

function line(pen: Pen, i: Importance, metric: string, y: number, wide: number): void {
    const weight = Math.abs(i.weight), goes = goesWith(i, shown(metric, METRIC_MOST));
    pen.textAlign = "end";
    pen.fillStyle = cssColour("--text");
    pen.fillText(shown(i.name, NAME_MOST), NAMES - 10, y + 17);
    pen.textAlign = "start";
    pen.strokeStyle = cssColour("--line");
    pen.strokeRect(NAMES, y + 5, wide, 16);
    pen.fillStyle = cssColour("--accent");
    if (weight > 0) pen.fillRect(NAMES, y + 5, weight * wide, 16);
    pen.fillStyle = cssColour("--soft");
    pen.fillText(`${Number.isNaN(weight) ? "cannot be told" : number(weight, 2)} · ${count(i.n, "trial")}${goes && ` · more of it: ${goes}`}`, NAMES + wide + 10, y + 17);
}

/* In the order in which they come. */
export function importancePicture(all: readonly Importance[], metric: string, title: string): Picture {
    const draw = (pen: Pen, w: number) => {
        pen.font = FONT;
        pen.lineWidth = 1;
        all.forEach((i, at) => line(pen, i, metric, TOP + at * LINE, w - NAMES - WORDS));
    };
    return { title, height: 2 * TOP + all.length * LINE, draw };
}
