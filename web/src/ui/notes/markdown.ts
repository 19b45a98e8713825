/* Markdown as a piece of document in which nothing runs and nothing is fetched; loaded when there is some to show. */
import DOMPurify from "dompurify";
import { Marked } from "marked";

const TAGS = ["p", "h3", "h4", "h5", "h6", "ul", "ol", "li", "a", "strong", "em", "del", "code", "pre", "blockquote", "hr", "br", "table",
    "thead", "tbody", "tr", "th", "td"];
const DEEPER = 2, DEEPEST = 6; // the page has the first two levels

/* HTML within it is shown as what it is: text. */
function escaped(text: string): string {
    return text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");
}

const parser = new Marked({ gfm: true, renderer: {
    html: ({ text }) => escaped(text),
    heading({ tokens, depth }) {
        const level = Math.min(DEEPEST, depth + DEEPER);
        return `<h${level}>${this.parser.parseInline(tokens)}</h${level}>\n`;
    },
    image: ({ href, text }) => `<a href="${escaped(href).replace(/"/g, "&quot;")}">${escaped(text || href)}</a>`,
    checkbox: ({ checked }) => (checked ? "☑ " : "☐ "),
} });

export function markdown(text: string): DocumentFragment {
    const clean = DOMPurify.sanitize(parser.parse(text, { async: false }), { ALLOWED_TAGS: TAGS, ALLOWED_ATTR: ["href", "title"],
        ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false, ALLOWED_URI_REGEXP: /^(?:https?:|mailto:|\/(?!\/)|#)/i, RETURN_DOM_FRAGMENT: true });
    for (const a of clean.querySelectorAll("a")) {
        if (a.getAttribute("href")?.startsWith("/det")) continue;
        a.target = "_blank";
        a.rel = "noopener noreferrer nofollow";
    }
    return clean;
}
