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

-- What one block holds now. While its row is locked no settled trial of it changes, so that all statements see the same. Of
-- very many names of metrics nobody asks for most: there the trials are read.
CREATE OR REPLACE FUNCTION keep_trial_block(p_experiment integer, p_block integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    numbers_most CONSTANT integer := 20000;
    low CONSTANT integer := p_block << 8;
    ids CONSTANT integer[] := ARRAY(SELECT id FROM trials WHERE experiment_id = p_experiment AND id BETWEEN low AND low + 255
                                    AND trial_is_settled(state, has_tail) ORDER BY id);
    n CONSTANT integer := cardinality(ids);
    sample CONSTANT jsonb := (SELECT hparams FROM trials WHERE id = ids[1]);
    is_few CONSTANT boolean := n * (SELECT count(*) FROM metric_names WHERE experiment_id = p_experiment) <= numbers_most;
BEGIN
    IF n = 0 THEN
        DELETE FROM trial_blocks WHERE experiment_id = p_experiment AND block = p_block;
        RETURN;
    END IF;
    DELETE FROM trial_block_metrics WHERE experiment_id = p_experiment AND block = p_block;
    UPDATE trial_blocks SET kept = true, has_metrics = is_few, trials = n, first_ids = ids[:20], hparams = sample,
        varying = nullif(ARRAY(SELECT key FROM trials t, jsonb_each(t.hparams) WHERE t.id = ANY (ids)
                        GROUP BY key HAVING count(*) < n OR bool_or(value IS DISTINCT FROM sample->key)), '{}')
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

-- Looks through blocks for so many milliseconds: how many are left, as far as anybody need know.
CREATE OR REPLACE FUNCTION keep_trial_blocks(p_ms integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    until CONSTANT timestamptz := clock_timestamp() + p_ms * interval '1 millisecond';
    b record;
BEGIN
    FOR b IN SELECT experiment_id, block FROM trial_blocks WHERE NOT kept LIMIT 100 FOR UPDATE SKIP LOCKED LOOP
        PERFORM keep_trial_block(b.experiment_id, b.block);
        EXIT WHEN clock_timestamp() >= until;
    END LOOP;
    RETURN (SELECT count(*) FROM (SELECT FROM trial_blocks WHERE NOT kept LIMIT 1000) x);
END $$;
