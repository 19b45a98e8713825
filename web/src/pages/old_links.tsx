/* Addresses of Determined's page that people have in chats and notes: each opens what it meant, with its part of the page. */
import { useEffect } from "preact/hooks";
import { navigate, path } from "../state/router";

const TABS: Record<string, string> = { checkpoints: "checkpoints", notes: "notes", code: "config", configuration: "config" };
const VIEWS: Record<string, string> = { "hp-scatter-plots": "scatter", "hp-heat-map": "heat" };

/* Where an old address goes now; its last part decides what is open there. */
export function now(v: Record<string, string>): string {
    const { id, trial, tab = "", viz = "" } = v;
    if (trial) return tab === "logs" ? `/det/trials/${trial}/logs` : `/det/trials/${trial}`;
    const open = (Object.hasOwn(VIEWS, viz) && VIEWS[viz]) || (Object.hasOwn(TABS, tab) && TABS[tab]);
    if (!id && tab === "logs") return "/det/master?tab=log";
    if (!id && tab === "historical-usage") return "/det/clusters/historical-usage";
    return id ? `/det/experiments/${id}${open ? `?tab=${open}` : ""}` : "/det/clusters";
}

export function OldLink(v: Record<string, string>) {
    const to = now(path.value === "/det/logs" ? { tab: "logs" } : v);
    useEffect(() => navigate(to, true), [to]);
    return <p><a href={to}>It is here now</a></p>;
}
