/* Trials side by side: which ones the address means, and in what they differ. The shaping is pure; only ask... talks to the master. */
import { call } from "../../api/client";
import { flat, varying, type Value } from "../../charts/axes";
import { expQuery, expView, idsOf, type ExpView } from "../../state/address";
import type { Experiment, Trial } from "../experiment/data";
import { configWithoutSecrets } from "../experiment/secrets";

export const SIDES_MOST = 20;

export interface CompareView {
    /* Of each experiment its best trial; beside them trials by themselves. */
    experiments: number[];
    trials: number[];
    isWhole: boolean;
    chart: ExpView;
}

export function compareView(query: string): CompareView {
    const q = new URLSearchParams(query), chart = expView(query);
    const experiments = idsOf(q.get("e")).slice(0, SIDES_MOST);
    return { experiments, trials: chart.trials.slice(0, SIDES_MOST - experiments.length), isWhole: q.get("all") === "1", chart };
}

export function compareQuery(v: CompareView): string {
    const q = new URLSearchParams(expQuery({ ...v.chart, trials: v.trials }));
    if (v.experiments.length) q.set("e", v.experiments.join(","));
    if (v.isWhole) q.set("all", "1");
    const text = q.toString();
    return text && "?" + text;
}

export interface Side { trial: Trial; exp: Experiment }

const askExperiment = async (experimentId: number, signal: AbortSignal): Promise<Experiment> =>
    (await call("GET /api/v1/experiments/{experimentId}", { path: { experimentId }, signal })).experiment;
const askTrial = async (trialId: number, signal: AbortSignal): Promise<Trial> =>
    (await call("GET /api/v1/trials/{trialId}", { path: { trialId }, signal })).trial;

/* The best trial of an experiment, or where none has a metric yet its first. */
async function idsOfTrials(exps: Experiment[], signal: AbortSignal): Promise<number[]> {
    const first = async (e: Experiment) => (await call("GET /api/v1/experiments/{experimentId}/trials",
        { path: { experimentId: e.id }, query: { sortBy: "SORT_BY_ID", limit: 1 }, signal })).trials.map((t) => t.id);
    return (await Promise.all(exps.map((e) => (e.bestTrialId ? [e.bestTrialId] : first(e))))).flat();
}

export async function askSides(v: CompareView, signal: AbortSignal): Promise<Side[]> {
    const exps = new Map((await Promise.all(v.experiments.map((id) => askExperiment(id, signal)))).map((e) => [e.id, e]));
    const ids = [...new Set([...await idsOfTrials([...exps.values()], signal), ...v.trials])];
    const trials = await Promise.all(ids.map((id) => askTrial(id, signal)));
    const missing = [...new Set(trials.map((t) => t.experimentId))].filter((id) => !exps.has(id));
    for (const e of await Promise.all(missing.map((id) => askExperiment(id, signal)))) exps.set(e.id, e);
    return trials.map((trial) => ({ trial, exp: exps.get(trial.experimentId)! }));
}

export interface Difference {
    name: string;
    /* One a side; undefined: it has none. */
    values: (Value | undefined)[];
    differs: boolean;
}

/* Names in order, those that differ first. */
export function differences(sides: Record<string, Value>[]): Difference[] {
    const names = [...new Set(sides.flatMap((s) => Object.keys(s)))].sort(), vary = new Set(varying(sides));
    const all = names.map((name) => ({ name, values: sides.map((s) => s[name]), differs: vary.has(name) }));
    return [...all.filter((d) => d.differs), ...all.filter((d) => !d.differs)];
}

/* The configuration without secrets and what is told elsewhere: hyperparameters as the trials had them, and what only names it. */
export function settingsOf(config: Record<string, unknown> | null): Record<string, Value> {
    const { hyperparameters: _, name: __, description: ___, labels: ____, ...rest } = (configWithoutSecrets(config) ?? {}) as Record<string, unknown>;
    return flat(rest);
}
