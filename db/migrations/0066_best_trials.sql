-- Numbers of the best trials' metrics, which searches sort and filter by: they looked each up in the summary of its trial.

-- Nobody may write between this and the triggers: a leader may serve meanwhile.
LOCK TABLE experiments IN SHARE ROW EXCLUSIVE MODE;
CREATE TABLE best_trials (
    experiment_id integer PRIMARY KEY REFERENCES experiments ON DELETE CASCADE,
    is_due boolean NOT NULL DEFAULT true,       -- the rest is not known now
    trial_id integer,                           -- which is the best
    has_numbers boolean NOT NULL DEFAULT false  -- best_numbers has all of its summary; else that is looked up
) WITH (fillfactor = 70);
CREATE INDEX best_trials_looked_up ON best_trials (experiment_id) WHERE is_due OR NOT has_numbers;
CREATE TABLE best_numbers (
    experiment_id integer NOT NULL REFERENCES best_trials ON DELETE CASCADE,
    grp text NOT NULL, -- as in trials.summary_metrics
    name text NOT NULL,
    last double precision,
    min double precision,
    max double precision,
    mean double precision,
    odd jsonb,         -- those of the four that are more, or something else, than this number
    digest uuid NOT NULL GENERATED ALWAYS AS (md5(grp || '.' || name)::uuid) STORED -- a name may be longer than an index takes
);
CREATE INDEX best_numbers_experiment ON best_numbers (experiment_id);
CREATE INDEX best_numbers_metric ON best_numbers (digest, experiment_id);
INSERT INTO best_trials (experiment_id) SELECT id FROM experiments WHERE best_trial_id IS NOT NULL;
