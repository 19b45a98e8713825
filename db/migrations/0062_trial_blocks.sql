-- Trials that have ended, summed up in blocks: groups of trials read each of 100,000. A block is what an experiment has of 256
-- ids. Its row comes with the first trial that ends and says what the block holds, or, until it is looked through again, that
-- it does not know: then its trials are read. The master looks through a few at a time (keep_trial_blocks()), these here too.

-- Nobody may write between this and the triggers: a leader may serve meanwhile.
LOCK TABLE trials IN SHARE ROW EXCLUSIVE MODE;
CREATE TABLE trial_blocks (
    experiment_id integer NOT NULL REFERENCES experiments ON DELETE CASCADE,
    block integer NOT NULL,              -- ids of trials >> 8
    kept boolean NOT NULL DEFAULT false, -- the rest is of these trials as they are
    has_metrics boolean NOT NULL DEFAULT false,
    trials integer NOT NULL DEFAULT 0,
    first_ids integer[] NOT NULL DEFAULT '{}', -- of the first 20
    hparams jsonb NOT NULL DEFAULT '{}',       -- of the first
    varying text[],                            -- the names in which others differ from it, if any
    PRIMARY KEY (experiment_id, block)
) WITH (fillfactor = 70);
CREATE INDEX trial_blocks_due ON trial_blocks (experiment_id, block) WHERE NOT kept;
-- A metric's last, min, max and mean, of the trials that have a number there: how many, the least, the most, and the state of
-- PostgreSQL's own aggregates over those whose squares have room.
CREATE TABLE trial_block_metrics (
    experiment_id integer NOT NULL,
    block integer NOT NULL,
    grp text NOT NULL, -- as in trials.summary_metrics
    name text NOT NULL,
    last_n integer NOT NULL, last_low double precision, last_high double precision, last_state double precision[],
    min_n integer NOT NULL, min_low double precision, min_high double precision, min_state double precision[],
    max_n integer NOT NULL, max_low double precision, max_high double precision, max_state double precision[],
    mean_n integer NOT NULL, mean_low double precision, mean_high double precision, mean_state double precision[],
    FOREIGN KEY (experiment_id, block) REFERENCES trial_blocks ON DELETE CASCADE
);
CREATE INDEX trial_block_metrics_block ON trial_block_metrics (experiment_id, block);
-- A name may be longer than an index takes.
CREATE INDEX trial_block_metrics_name ON trial_block_metrics (md5(name), grp, experiment_id, block);
INSERT INTO trial_blocks (experiment_id, block) SELECT DISTINCT experiment_id, id >> 8 FROM trials
    WHERE NOT has_tail AND state IN ('COMPLETED', 'CANCELED', 'ERROR');

-- What avg() and stddev_samp() count up, as such: so parts are put together as a parallel plan does it.
CREATE AGGREGATE spread_state(double precision) (SFUNC = float8_accum, STYPE = double precision[], INITCOND = '{0,0,0}');
CREATE AGGREGATE spread_merge(double precision[]) (SFUNC = float8_combine, STYPE = double precision[], INITCOND = '{0,0,0}');
