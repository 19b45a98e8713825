/* Hyperparameters as columns of the list: what the best trial had; before there is one, where the search looks. */
import { flat } from "../../charts/axes";
import type { Listed } from "./data";
import type { ColumnKind } from "./columns";
import { number, value } from "../../ui/words/format";
import { Name, shown } from "../../ui/words/name";

const WIDTH = 130;

type Spec = Record<string, unknown>;
const isTree = (v: unknown): v is Spec => typeof v === "object" && v !== null && !Array.isArray(v);

/* "1e-4 … 0.1", "relu, tanh", 0.5; of logarithms the values that they are of. */
export function specText(v: unknown): string {
    if (!isTree(v)) return value(v);
    const end = (at: unknown) => (typeof at !== "number" ? value(at) : v["type"] === "log" ? number(Math.pow(Number(v["base"] ?? 10), at)) : number(at));
    if (v["type"] === "const") return value(v["val"]);
    if (Array.isArray(v["vals"])) return v["vals"].map(value).join(", ");
    return "minval" in v && "maxval" in v ? `${end(v["minval"])} … ${end(v["maxval"])}` : value(v);
}

/* By flat name; a map that says no type of its own holds more of them. */
export function hpsOf(space: unknown, prefix = "", out = new Map<string, unknown>()): Map<string, unknown> {
    for (const [name, v] of Object.entries(isTree(space) ? space : {})) {
        if (isTree(v) && typeof v["type"] !== "string") hpsOf(v, `${prefix}${name}.`, out);
        else out.set(prefix + name, v);
    }
    return out;
}

const spaceOf = (e: Pick<Listed, "config">): Map<string, unknown> => hpsOf(e.config?.["hyperparameters"]);
const isSearched = (spec: unknown): boolean => isTree(spec) && typeof spec["type"] === "string" && spec["type"] !== "const";

/* Whether the trials of an experiment differ in one of these. */
export function searches(e: Pick<Listed, "config">, names: readonly string[]): boolean {
    const space = spaceOf(e);
    return names.some((n) => isSearched(space.get(n)));
}

export interface HpCell {
    text: string;
    /* The value for a file. */
    plain: unknown;
    /* Where the search looks: no trial is the best yet. */
    isRange: boolean;
    title: string;
}

export function hpCell(e: Pick<Listed, "config" | "best" | "bestTrialId">, name: string): HpCell {
    const space = spaceOf(e), has = space.has(name), range = has ? specText(space.get(name)) : "", isRange = isSearched(space.get(name));
    if (!e.best) return { text: range, plain: range, isRange, title: isRange ? `searched: ${range}` : range };
    const best = flat(e.best)[name];
    if (best === undefined) return { text: range, plain: range, isRange, title: range };
    return { text: value(best), plain: best, isRange: false, title: isRange ? `${String(best)} in trial ${e.bestTrialId}, the best; searched: ${range}` : String(best) };
}

export function hpKind(name: string): ColumnKind {
    const show = (e: Listed) => {
        const cell = hpCell(e, name);
        return cell.isRange ? <span class="soft"><Name text={cell.text} /></span> : <Name text={cell.text} />;
    };
    return { title: shown(name), width: WIDTH, show, whole: (e) => shown(hpCell(e, name).title), plain: (e) => hpCell(e, name).plain };
}

export function namesOf(rows: Listed[], chosen: readonly string[]): string[] {
    return [...new Set([...chosen, ...rows.flatMap((e) => [...spaceOf(e).keys()])])].sort();
}
