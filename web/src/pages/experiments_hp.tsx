/* Hyperparameters as columns of the list: of one that is searched, where the search looks. */
import type { Experiment } from "./experiment_data";
import type { ColumnKind } from "./experiments_columns";
import { number, value } from "../ui/format";
import { Name, shown } from "../ui/name";

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

const textOf = (e: Experiment, name: string): string => {
    const all = hpsOf(e.config?.["hyperparameters"]);
    return all.has(name) ? specText(all.get(name)) : "";
};

export function hpKind(name: string): ColumnKind {
    return { title: shown(name), width: WIDTH, show: (e) => <Name text={textOf(e, name)} />, whole: (e) => shown(textOf(e, name)), plain: (e) => textOf(e, name) };
}

export function namesOf(rows: Experiment[], chosen: readonly string[]): string[] {
    return [...new Set([...chosen, ...rows.flatMap((e) => [...hpsOf(e.config?.["hyperparameters"]).keys()])])].sort();
}
