/* Whether the page is as narrow as a phone: rows of tables are cards then (parts.css has the same width). */
import { signal } from "@preact/signals";

const asked = typeof matchMedia === "undefined" ? null : matchMedia("(max-width: 30rem)");
export const isNarrow = signal(asked?.matches ?? false);
asked?.addEventListener("change", (e) => { isNarrow.value = e.matches; });
