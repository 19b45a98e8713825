/* That the master serves another page than the one that is open: an upgrade, of which an open tab knows nothing. */
import { askOwnPage } from "../api/client";
import { useLive } from "../state/live";

const SELDOM_MS = 300_000;

const OURS = "/assets/";

/* Whether a text of the page's own file is not the one that these scripts came with; what is no such page tells nothing, nor does a script that the browser added. */
export function isNewer(html: string, scripts: readonly string[]): boolean {
    return /<script[^>]*\ssrc="\/assets\//.test(html) && !scripts.filter((s) => s.startsWith(OURS)).every((s) => html.includes(`src="${s}"`));
}

const ownScripts = (): string[] => [...document.querySelectorAll("script[src]")].map((s) => s.getAttribute("src")!);

export function Newer() {
    const live = useLive("the page", "", async (signal) => isNewer(await askOwnPage(signal), ownScripts()), () => SELDOM_MS);
    return live.data ? <p class="newer" role="status">The master has a newer version of this page. <button type="button" onClick={() => location.reload()}>Load it</button></p> : null;
}
