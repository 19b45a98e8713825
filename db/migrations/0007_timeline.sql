-- What happened to a trial and when: written by the master's core, and from the marks that hosts report. A repeat
-- is the same row. Reading: by (trial_id, at_us).

CREATE TABLE trial_timeline (
    trial_id integer NOT NULL,
    at_us bigint NOT NULL,        -- wall clock of whoever saw it, microseconds since 1970
    run_id integer NOT NULL,
    node integer NOT NULL,        -- number of the run's container; -1: the master
    kind text NOT NULL,
    duration_us bigint NOT NULL,  -- of what ended at at_us; 0: a moment
    detail text NOT NULL,
    PRIMARY KEY (trial_id, at_us, run_id, node, kind)
);
