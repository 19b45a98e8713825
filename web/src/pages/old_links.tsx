/* Addresses of Determined's page that people have in chats and notes: each opens what it meant, with its part of the page. */
import { useEffect } from "preact/hooks";
import { call } from "../api/client";
import { useLive } from "../state/live";
import { LIST_VIEW, listQuery, STATE_GROUPS, type StateGroup } from "../state/list_address";
import { match, navigate, path, query } from "../state/router";
import { signOut } from "../state/session";
import { isOurs } from "../state/views";
import { attempt } from "../ui/talk/attempt";
import { poolAddress } from "./cluster/data";
import { Problem } from "./problem";

type Variables = Record<string, string>;
/* Another address; a part of an experiment's one trial, which is asked for; or a sentence where there is no such page. */
export type Target = { to: string } | { experiment: string; part: string } | { sentence: string };
type Row = [pattern: string, target: (v: Variables, q: URLSearchParams) => Target];

const HERE = "/det/experiments";
const to = (address: string): Target => ({ to: address });
const at = (address: string) => (): Target => to(address);
const local = (address: string | null): Target => to(address && isOurs(address) ? address : HERE);

const TABS: Variables = { checkpoints: "checkpoints", notes: "notes", code: "code", configuration: "config" };
const VIEWS: Variables = { "hp-scatter-plots": "scatter", "hp-heat-map": "heat" };
const PARTS: Variables = { hyperparameters: "hyperparameters", profiler: "profile", logs: "logs", metrics: "metrics", workloads: "metrics" };
const of = (names: Variables, name: string | undefined): string | undefined => (name && Object.hasOwn(names, name) ? names[name] : undefined);

/* What belongs to one trial is that of the experiment's first: only experiments of one trial had it. */
function experiment({ id = "", tab, viz }: Variables, q: URLSearchParams): Target {
    const part = of(PARTS, tab), open = of(VIEWS, viz) ?? of(TABS, tab), file = open === "code" && q.get("filePath");
    return part ? { experiment: id, part } : to(`${HERE}/${id}${open ? `?tab=${open}` : ""}${file ? `&file=${encodeURIComponent(file)}` : ""}`);
}

/* Of the log's old keys the page of logs knows what they are now. */
export function partOfTrial(trial: string, part: string | undefined, q = new URLSearchParams()): string {
    const rest = q.toString();
    if (part === "logs") return `/det/trials/${trial}/logs${rest && `?${rest}`}`;
    return `/det/trials/${trial}${part ? `?at=${part}` : ""}`;
}

const STATES: Record<string, StateGroup> = { ACTIVE: "active", PAUSED: "paused", COMPLETED: "completed", CANCELED: "canceled", ERROR: "failed" };

/* What the old list was filtered by, as the list has it; null: by nothing. */
export function filteredProject(id: string, q: URLSearchParams): string | null {
    if (!["search", "state", "user", "label", "archived"].some((key) => q.has(key))) return null;
    const states = q.getAll("state").map((s) => STATES[s.replace("STATE_", "")]), owners = q.getAll("user").map(Number).filter((n) => Number.isSafeInteger(n) && n > 0);
    return HERE + listQuery({ ...LIST_VIEW, search: q.get("search") ?? "", states: STATE_GROUPS.filter((g) => states.includes(g)), owners, labels: q.getAll("label"),
        archived: q.get("archived") === "true" ? "only" : "no", tree: { how: "and", children: [{ column: "projectId", op: "=", value: Number(id) }] } });
}

const NO_TASKS = "Commands, notebooks, shells and TensorBoards are no tasks of this cluster. What runs is in the queue; a trial's event files come with det tensorboard start.";

const ROWS: Row[] = [
    ["/det/login", (_, q) => local(q.get("redirect"))], ["/det/reload", (_, q) => local(q.get("path"))], ["/det/dashboard", at(HERE)],
    ["/det/projects", at("/det/projects/1")], ["/det/experiment-compare", (_, q) => to(`/det/compare?e=${q.getAll("id").filter((id) => /^[1-9]\d{0,14}$/.test(id)).join(",")}`)],
    ["/det/tasks", at("/det/clusters")], ["/det/jobs", at("/det/clusters")],
    ["/det/resourcepool/:pool", ({ pool = "" }) => to(poolAddress(pool))], ["/det/resourcepool/:pool/:tab", ({ pool = "" }) => to(poolAddress(pool))],
    ["/det/logs", at("/det/master?tab=log")], ["/det/cluster/logs", at("/det/master?tab=log")], ["/det/clusters/logs", at("/det/master?tab=log")],
    ["/det/cluster/historical-usage", (_, q) => to(`/det/clusters/historical-usage${q.size ? `?${q}` : ""}`)],
    ["/det/cluster", at("/det/clusters")], ["/det/cluster/:tab", at("/det/clusters")], ["/det/clusters/:tab", at("/det/clusters")],
    ["/det/admin", at("/det/users")], ["/det/admin/group-management", at("/det/users?tab=groups")], ["/det/admin/:tab", at("/det/users")],
    ...["/det/interactive/:id/:type/:name/:pool/:url", "/det/wait/:type/:id", "/det/command/:id/logs", "/det/jupyter-lab/:id/logs", "/det/shell/:id/logs", "/det/tensor-board/:id/logs"]
        .map((pattern): Row => [pattern, () => ({ sentence: NO_TASKS })]),
    ["/det/trials/:trial/:tab", ({ trial = "", tab }, q) => to(partOfTrial(trial, of(PARTS, tab), q))],
    ["/det/experiments/:id/trials/:trial", ({ trial = "" }) => to(partOfTrial(trial, undefined))],
    ["/det/experiments/:id/trials/:trial/:tab", ({ trial = "", tab }, q) => to(partOfTrial(trial, of(PARTS, tab), q))],
    ["/det/experiments/:id/:tab", experiment], ["/det/experiments/:id/:tab/:viz", experiment],
];
export const OLD_PATTERNS: string[] = ROWS.map(([pattern]) => pattern);

/* Where an old address goes now; null: it is none. */
export function now(address: string, q = new URLSearchParams()): Target | null {
    for (const [pattern, target] of ROWS) {
        const v = match(pattern, address);
        if (v) return target(v, q);
    }
    return null;
}

function Moved({ address }: { address: string }) {
    useEffect(() => navigate(address, true), [address]);
    return <p><a href={address}>It is here now</a></p>;
}

function OfFirstTrial({ experiment: id, part, q }: { experiment: string; part: string; q: URLSearchParams }) {
    const live = useLive(`first trial of ${id}`, "", (signal) => call("GET /api/v1/experiments/{experimentId}/trials",
        { path: { experimentId: id }, query: { sortBy: "SORT_BY_ID", limit: 1 }, signal }), () => null), trial = live.data?.trials[0];
    if (trial) return <Moved address={partOfTrial(String(trial.id), part, q)} />;
    return live.data ? <Moved address={`${HERE}/${id}`} /> : <><Problem error={live.error} what="The experiment" /><p class="soft">Asking…</p></>;
}

export function OldLink() {
    const q = query.value, found = now(path.value, q);
    if (!found || "sentence" in found) return <><h1>Nothing is here</h1><p>{found?.sentence} <a href="/det/clusters">The cluster and its queue</a></p></>;
    return "to" in found ? <Moved address={found.to} /> : <OfFirstTrial {...found} q={q} />;
}

/* A link alone signs nobody out. */
export function SignOutPage() {
    return <><h1>Sign out</h1><p><button type="button" class="main" onClick={() => void attempt("Not signed out", signOut)}>Sign out</button></p></>;
}
