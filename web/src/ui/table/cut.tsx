/* That a list is not all there is, and the way to all of it; nothing where it is. */
import { wholeAddress, type Part } from "../../state/part";
import { count } from "../words/format";

/* "" where nothing is missing. */
export function cutText(part: Part<unknown>, one: string): string {
    return part.rows.length < part.total ? `The first ${part.rows.length.toLocaleString("en")} of ${count(part.total, one)} are shown.` : "";
}

/* `href`: where the whole list is, unless it is on this page. */
export function Cut({ part, one, href }: { part: Part<unknown> | null; one: string; href?: string }) {
    const text = part && cutText(part, one);
    return text ? <p class="soft" role="status">{text} <a href={href ?? wholeAddress()}>{href ? `The list of all ${one}s` : "Show all"}</a></p> : null;
}
