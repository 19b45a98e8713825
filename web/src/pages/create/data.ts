/* What the page that creates experiments asks of the master, and the text that it begins with. */
import { ApiError, call } from "../../api/client";
import { mistakesOf, type Mistake } from "../../state/mistakes";
import type { Experiment } from "../experiment/data";

export const BEGIN = `name: my-experiment
entrypoint: model_def:MyTrial
hyperparameters:
  global_batch_size: 32
  learning_rate:
    type: log
    base: 10
    minval: -4
    maxval: -1
searcher:
  name: random
  metric: accuracy
  smaller_is_better: false
  max_trials: 8
  max_length:
    epochs: 5
`;

export interface Wanted {
    text: string;
    template: string;
    /* The experiment whose files and lineage it has; 0: none. */
    parent: number;
    /* Where it goes if its text does not say: where its parent is; 0: where all go. */
    project: number;
}

export interface Verdict {
    mistakes: Mistake[];
    /* What has no effect, and what the cluster lacks now. */
    advice: string[];
}

/* A template may name a place, too. */
export function bodyOf(w: Wanted) {
    const hasPlace = w.template || /^(workspace|project):/m.test(w.text);
    return { config: w.text, ...(w.template ? { template: w.template } : {}), ...(w.parent ? { parentId: w.parent } : {}),
        ...(w.project && !hasPlace ? { projectId: w.project } : {}) };
}

const SLOTS = "It asks for more slots than the cluster has now: it would wait.";

/* The master's word on a configuration; nothing is made. */
export async function judged(w: Wanted, signal: AbortSignal): Promise<Verdict> {
    try {
        const r = await call("POST /api/v1/experiments", { body: { ...bodyOf(w), validateOnly: true, gitCommitDate: null }, signal });
        return { mistakes: [], advice: [...((r as { advice?: string[] }).advice ?? []), ...(r.warnings?.length ? [SLOTS] : [])] };
    } catch (e) {
        if (!(e instanceof ApiError) || e.status === 0 || e.status === 401) throw e;
        return { mistakes: mistakesOf(e.message), advice: [] };
    }
}

export async function made(w: Wanted, files: Awaited<ReturnType<typeof import("./model_files").packed>>, activate: boolean): Promise<Experiment> {
    const r = await call("POST /api/v1/experiments", { body: { ...bodyOf(w), modelDefinition: files, activate, gitCommitDate: null } });
    return r.experiment;
}

/* Its text as it was written, under a name that tells whose fork it is; comments and order stay. */
export function forkText(e: Pick<Experiment, "originalConfig" | "name">): string {
    const name = `name: ${JSON.stringify(`Fork of ${e.name}`)}`;
    return /^name:.*$/m.test(e.originalConfig) ? e.originalConfig.replace(/^name:.*$/m, () => name) : e.originalConfig;
}
