/* Whether the page is dark just now: canvases take their colours from here, not from CSS. */
import { computed, signal } from "@preact/signals";
import { theme } from "../state/prefs";

const asked = typeof matchMedia === "undefined" ? null : matchMedia("(prefers-color-scheme: dark)");
const system = signal(asked?.matches ?? false);
asked?.addEventListener("change", (e) => { system.value = e.matches; });

export const isDark = computed(() => theme.value === "dark" || (theme.value === "system" && system.value));

/* A colour of tokens.css as it is now, e.g. cssColour("--text"). */
export function cssColour(name: string): string {
    return getComputedStyle(document.documentElement).getPropertyValue(name).trim() || "#888";
}
