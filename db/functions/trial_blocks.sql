-- trial_blocks: what trials that have ended have in common, and the spread of their metrics, block by block.

-- Nothing of it will change, but by what is rare; the index trials_tails has all others.
CREATE OR REPLACE FUNCTION trial_is_settled(p_state text, p_tail boolean) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT NOT (p_tail OR NOT has_ended(p_state))
$$;

-- A settled trial came, changed or went: its block is looked through anew. Whoever does that has the row locked, and so
-- knows of this change, or is waited for and then contradicted.
CREATE OR REPLACE FUNCTION doubt_trial_block() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE trial_blocks SET kept = false WHERE experiment_id = OLD.experiment_id AND block = OLD.id >> 8;
    ELSE
        INSERT INTO trial_blocks AS b (experiment_id, block) VALUES (NEW.experiment_id, NEW.id >> 8)
            ON CONFLICT (experiment_id, block) DO UPDATE SET kept = false WHERE b.kept;
    END IF;
    IF TG_OP <> 'INSERT' THEN -- keep_best_trial() has the trial locked, so that this sees what it did
        UPDATE best_trials SET is_due = true WHERE experiment_id = OLD.experiment_id AND trial_id = OLD.id AND NOT is_due;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER trials_block_more AFTER INSERT ON trials FOR EACH ROW
    WHEN (NEW.state IN ('COMPLETED', 'CANCELED', 'ERROR') AND NOT NEW.has_tail) EXECUTE FUNCTION doubt_trial_block();
CREATE TRIGGER trials_block_less AFTER DELETE ON trials FOR EACH ROW
    WHEN (OLD.state IN ('COMPLETED', 'CANCELED', 'ERROR') AND NOT OLD.has_tail) EXECUTE FUNCTION doubt_trial_block();
CREATE TRIGGER trials_block_other AFTER UPDATE OF state, has_tail, hparams, summary_metrics ON trials FOR EACH ROW
    WHEN ((NEW.state IN ('COMPLETED', 'CANCELED', 'ERROR') AND NOT NEW.has_tail OR OLD.state IN ('COMPLETED', 'CANCELED', 'ERROR') AND NOT OLD.has_tail)
          AND ROW(NEW.state, NEW.has_tail, NEW.hparams, NEW.summary_metrics) IS DISTINCT FROM ROW(OLD.state, OLD.has_tail, OLD.hparams, OLD.summary_metrics))
    EXECUTE FUNCTION doubt_trial_block();

-- A number of a summary, if it is one.
CREATE OR REPLACE FUNCTION stat_number(v jsonb) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN jsonb_typeof(v) = 'number' THEN v::float8 END
$$;

-- What one block holds now. While its row is locked no settled trial of it changes, so that all statements see the same. It
-- runs among the master's writes, so it looks at so much and no more: where hyperparameters are past that the block says
-- trials = 0 and its trials are read; where metrics are, of which nobody asks for most, those that ask for metrics read them.
CREATE OR REPLACE FUNCTION keep_trial_block(p_experiment integer, p_block integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    bytes_most CONSTANT integer := 256 * 1024; -- of hyperparameters, as they are stored
    summaries_most CONSTANT integer := 1024 * 1024;
    hparams_most CONSTANT integer := 8000;     -- of all trials together
    numbers_most CONSTANT integer := 5000;     -- trials by names
    names_most CONSTANT integer := 500;        -- each gets a row
    ids integer[];
    n integer;
    sample jsonb;
    names bigint;
    is_small boolean;
    is_few boolean;
BEGIN
    SELECT array_agg(id ORDER BY id), count(*), sum(pg_column_size(hparams)) <= bytes_most, sum(pg_column_size(summary_metrics)) <= summaries_most
        INTO ids, n, is_small, is_few FROM trials
        WHERE experiment_id = p_experiment AND id BETWEEN p_block << 8 AND (p_block << 8) + 255 AND trial_is_settled(state, has_tail);
    IF n = 0 THEN
        DELETE FROM trial_blocks WHERE experiment_id = p_experiment AND block = p_block;
        RETURN;
    END IF;
    IF is_small THEN
        is_small := (SELECT count(*) FROM (SELECT FROM trials t, jsonb_object_keys(t.hparams) WHERE t.id = ANY (ids) LIMIT hparams_most + 1) x) <= hparams_most;
    END IF;
    DELETE FROM trial_block_metrics WHERE experiment_id = p_experiment AND block = p_block;
    IF NOT is_small THEN
        UPDATE trial_blocks SET kept = true, has_metrics = false, trials = 0, first_ids = '{}', hparams = '{}', varying = NULL
            WHERE experiment_id = p_experiment AND block = p_block;
        RETURN;
    END IF;
    names := (SELECT count(*) FROM (SELECT FROM metric_names WHERE experiment_id = p_experiment LIMIT names_most + 1) x);
    is_few := is_few AND names <= names_most AND n * names <= numbers_most;
    sample := (SELECT hparams FROM trials WHERE id = ids[1]);
    UPDATE trial_blocks SET kept = true, has_metrics = is_few, trials = n, first_ids = ids[:20], hparams = sample,
        varying = nullif(ARRAY(SELECT h.key FROM trials t CROSS JOIN jsonb_each(t.hparams) h LEFT JOIN jsonb_each(sample) s ON s.key = h.key
                        WHERE t.id = ANY (ids) GROUP BY h.key HAVING count(*) < n OR bool_or(h.value IS DISTINCT FROM s.value)), '{}')
        WHERE experiment_id = p_experiment AND block = p_block;
    INSERT INTO trial_block_metrics
        SELECT p_experiment, p_block, g.key, m.key,
               count(v.a), min(v.a), max(v.a), spread_state(v.a) FILTER (WHERE abs(v.a) < 1e140),
               count(v.b), min(v.b), max(v.b), spread_state(v.b) FILTER (WHERE abs(v.b) < 1e140),
               count(v.c), min(v.c), max(v.c), spread_state(v.c) FILTER (WHERE abs(v.c) < 1e140),
               count(v.d), min(v.d), max(v.d), spread_state(v.d) FILTER (WHERE abs(v.d) < 1e140)
        FROM trials t, jsonb_each(t.summary_metrics) g, jsonb_each(g.value) m,
             LATERAL (SELECT stat_number(m.value->'last') a, stat_number(m.value->'min') b, stat_number(m.value->'max') c,
                             stat_number(m.value->'mean') d OFFSET 0) v
        WHERE is_few AND t.id = ANY (ids) GROUP BY g.key, m.key;
END $$;

-- Looks through blocks and best trials for so many milliseconds: how many are left, as far as anybody need know. Of a block
-- that cannot be summed the trials are read, and the others lose nothing by it.
CREATE OR REPLACE FUNCTION keep_trial_blocks(p_ms integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    until CONSTANT timestamptz := clock_timestamp() + p_ms * interval '1 millisecond';
    b record;
BEGIN
    FOR b IN SELECT experiment_id, block FROM trial_blocks WHERE NOT kept LIMIT 100 FOR UPDATE SKIP LOCKED LOOP
        BEGIN
            PERFORM keep_trial_block(b.experiment_id, b.block);
        EXCEPTION
            WHEN deadlock_detected OR lock_not_available THEN
                NULL; -- another time
            WHEN OTHERS THEN
                RAISE WARNING 'block % of the trials of experiment %: %', b.block, b.experiment_id, SQLERRM;
                UPDATE trial_blocks SET kept = true, trials = 0 WHERE experiment_id = b.experiment_id AND block = b.block;
        END;
        EXIT WHEN clock_timestamp() >= until;
    END LOOP;
    RETURN keep_best_trials(until) + (SELECT count(*) FROM (SELECT FROM trial_blocks WHERE NOT kept LIMIT 1000) x);
END $$;

-- One block, if any is due, is one whose trials are read. After a call that took too long each is set aside so, in a
-- transaction of its own, before it is looked through: whichever it was is not met again.
CREATE OR REPLACE FUNCTION set_trial_block_aside() RETURNS TABLE (experiment integer, aside integer) LANGUAGE sql AS $$
    UPDATE trial_blocks SET kept = true, trials = 0
        WHERE ctid = ANY (ARRAY(SELECT ctid FROM trial_blocks WHERE NOT kept LIMIT 1 FOR UPDATE SKIP LOCKED)) RETURNING experiment_id, block
$$;
-- Whoever changed it since has said so, or waits behind this.
CREATE OR REPLACE FUNCTION keep_trial_block_aside(p_experiment integer, p_block integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM FROM trial_blocks WHERE experiment_id = p_experiment AND block = p_block FOR UPDATE;
    IF FOUND THEN
        PERFORM keep_trial_block(p_experiment, p_block);
    END IF;
END $$;

-- Blocks that have no row, of 2,048 ids from p_from on: from where to go on, if there are more. A new leader asks before it
-- keeps any. After 0062 was committed and before the triggers were, an older one may have let trials end that nobody wrote
-- down. A change of a block that had its row then was missed too, but does no harm: only a leader that has the triggers keeps
-- blocks, so that it was not kept. So it is with best trials, since 0066. From the start on, those that were set aside get another look too, some at least.
CREATE OR REPLACE FUNCTION find_trial_blocks(p_from bigint) RETURNS integer LANGUAGE plpgsql AS $$
BEGIN
    IF p_from = 0 THEN
        UPDATE trial_blocks SET kept = false WHERE ctid = ANY (ARRAY(SELECT ctid FROM trial_blocks WHERE kept AND trials = 0 LIMIT 1000));
        INSERT INTO best_trials (experiment_id) SELECT id FROM experiments e WHERE best_trial_id IS NOT NULL
            AND NOT EXISTS (SELECT FROM best_trials b WHERE b.experiment_id = e.id) ON CONFLICT DO NOTHING;
    END IF;
    INSERT INTO trial_blocks (experiment_id, block)
        SELECT DISTINCT experiment_id, id >> 8 FROM trials WHERE id >= p_from AND id < p_from + 2048 AND trial_is_settled(state, has_tail)
        ON CONFLICT DO NOTHING;
    RETURN (SELECT min(id) FROM trials WHERE id >= p_from + 2048);
END $$;
