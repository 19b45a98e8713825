-- What lists of many experiments, with any filter and order, need to answer in a few milliseconds.

-- Each experiment's trials and checkpoints, counted: a list by their number looked at all of them.
CREATE TABLE experiment_sums (
    experiment_id integer PRIMARY KEY REFERENCES experiments ON DELETE CASCADE,
    trials bigint NOT NULL DEFAULT 0,
    checkpoints bigint NOT NULL DEFAULT 0, -- COMPLETED and PARTIALLY_DELETED, as their bytes
    bytes bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE FUNCTION is_counted_checkpoint(p_state text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT p_state IN ('COMPLETED', 'PARTIALLY_DELETED')
$$;
CREATE FUNCTION sum_trial() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE experiment_sums SET trials = trials - 1 WHERE experiment_id = OLD.experiment_id;
    ELSE
        INSERT INTO experiment_sums AS s (experiment_id, trials) VALUES (NEW.experiment_id, 1)
            ON CONFLICT (experiment_id) DO UPDATE SET trials = s.trials + 1;
    END IF;
    RETURN NULL;
END $$;
CREATE FUNCTION sum_checkpoint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND is_counted_checkpoint(OLD.state) THEN
        UPDATE experiment_sums SET checkpoints = checkpoints - 1, bytes = bytes - OLD.bytes
            WHERE experiment_id = OLD.experiment_id;
    END IF;
    IF TG_OP <> 'DELETE' AND is_counted_checkpoint(NEW.state) AND NEW.experiment_id IS NOT NULL THEN
        INSERT INTO experiment_sums AS s (experiment_id, checkpoints, bytes) VALUES (NEW.experiment_id, 1, NEW.bytes)
            ON CONFLICT (experiment_id) DO UPDATE SET checkpoints = s.checkpoints + 1, bytes = s.bytes + NEW.bytes;
    END IF;
    RETURN NULL;
END $$;
-- Nobody may write between the count and the triggers: a leader may serve meanwhile.
LOCK TABLE trials, checkpoints IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO experiment_sums SELECT e.id, t.n, c.n, c.bytes FROM experiments e
    CROSS JOIN LATERAL (SELECT count(*) n FROM trials WHERE experiment_id = e.id) t
    CROSS JOIN LATERAL (SELECT count(*) n, coalesce(sum(bytes), 0) bytes FROM checkpoints
                        WHERE experiment_id = e.id AND is_counted_checkpoint(state)) c;
CREATE TRIGGER trials_summed AFTER INSERT OR DELETE ON trials FOR EACH ROW EXECUTE FUNCTION sum_trial();
CREATE TRIGGER checkpoints_summed AFTER INSERT OR DELETE ON checkpoints FOR EACH ROW EXECUTE FUNCTION sum_checkpoint();
CREATE TRIGGER checkpoints_changed AFTER UPDATE OF state, bytes, experiment_id ON checkpoints FOR EACH ROW
    WHEN (ROW(NEW.state, NEW.bytes, NEW.experiment_id) IS DISTINCT FROM ROW(OLD.state, OLD.bytes, OLD.experiment_id))
    EXECUTE FUNCTION sum_checkpoint();

-- Labels, and parts of names: what is looked for is found, not gone through. A server without pg_trgm, or a role that
-- may not make it, goes through all names as before.
CREATE INDEX experiments_labels ON experiments USING gin (labels jsonb_path_ops);
CREATE FUNCTION text_pattern(part text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT '%' || replace(replace(replace(lower(part), '\', '\\'), '%', '\%'), '_', '\_') || '%'
$$;
DO $$
BEGIN
    CREATE EXTENSION IF NOT EXISTS pg_trgm;
    CREATE INDEX experiments_name_parts ON experiments USING gin (lower(name) gin_trgm_ops);
    CREATE INDEX experiments_description_parts ON experiments USING gin (lower(description) gin_trgm_ops);
EXCEPTION WHEN OTHERS THEN
    RAISE NOTICE 'experiments are searched by name without an index: %', SQLERRM;
END $$;

-- The sizes of a trial's checkpoints from the index alone.
DROP INDEX checkpoints_experiment;
CREATE INDEX checkpoints_experiment ON checkpoints (experiment_id) INCLUDE (state, bytes, trial_id);
