-- best_trials, best_numbers: what the summary of an experiment's best trial says, a row a metric.

-- Another trial is the best, or none is any more. Whoever looks at it has the row locked, and so knows of this change, or is
-- waited for and then contradicted.
CREATE OR REPLACE FUNCTION doubt_best_trial() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO best_trials AS b (experiment_id) VALUES (NEW.id)
        ON CONFLICT (experiment_id) DO UPDATE SET is_due = true WHERE NOT b.is_due;
    RETURN NULL;
END $$;
CREATE TRIGGER experiments_best_first AFTER INSERT ON experiments FOR EACH ROW
    WHEN (NEW.best_trial_id IS NOT NULL) EXECUTE FUNCTION doubt_best_trial();
CREATE TRIGGER experiments_best_other AFTER UPDATE OF best_trial_id, best_metric ON experiments FOR EACH ROW
    WHEN (NEW.best_trial_id IS DISTINCT FROM OLD.best_trial_id OR (NEW.best_metric IS NULL) <> (OLD.best_metric IS NULL))
    EXECUTE FUNCTION doubt_best_trial();

-- What best_numbers has of a metric's numbers that is more than them: text, and digits that a double does not have.
CREATE OR REPLACE FUNCTION odd_numbers(m jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT jsonb_object_agg(s, m->s) FROM unnest(ARRAY['last', 'min', 'max', 'mean']) s
        WHERE m->s <> 'null' AND to_jsonb(stat_number(m->s)) IS DISTINCT FROM m->s
$$;

-- Looks at one, whose row is locked. A trial that is still written to is looked up by who asks, and says when it has ended;
-- while it is locked, nothing is known. Large summaries are looked up too: this runs among the master's writes.
CREATE OR REPLACE FUNCTION keep_best_trial(p_experiment integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    bytes_most CONSTANT integer := 64 * 1024;
    names_most CONSTANT integer := 500;
    best CONSTANT integer := (SELECT best_trial_id FROM experiments WHERE id = p_experiment AND best_metric IS NOT NULL);
    t record;
    has boolean;
BEGIN
    SELECT x.summary_metrics doc, trial_is_settled(x.state, x.has_tail) settled INTO t FROM trials x WHERE x.id = best FOR SHARE SKIP LOCKED;
    IF NOT FOUND AND EXISTS (SELECT FROM trials WHERE id = best) THEN
        RETURN;
    END IF;
    DELETE FROM best_numbers WHERE experiment_id = p_experiment;
    IF t.doc IS NULL THEN
        DELETE FROM best_trials WHERE experiment_id = p_experiment;
        RETURN;
    END IF;
    has := t.settled AND pg_column_size(t.doc) <= bytes_most AND (SELECT count(*) FROM (SELECT FROM jsonb_each(t.doc) g, jsonb_object_keys(g.value) LIMIT names_most + 1) x) <= names_most;
    UPDATE best_trials SET is_due = false, trial_id = best, has_numbers = has WHERE experiment_id = p_experiment;
    INSERT INTO best_numbers SELECT p_experiment, g.key, m.key, stat_number(m.value->'last'), stat_number(m.value->'min'),
            stat_number(m.value->'max'), stat_number(m.value->'mean'), odd_numbers(m.value)
        FROM jsonb_each(t.doc) g, jsonb_each(g.value) m WHERE has;
END $$;

-- Looks at some that are due until that time: how many are left, as far as anybody need know.
CREATE OR REPLACE FUNCTION keep_best_trials(p_until timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    e integer;
BEGIN
    FOR e IN SELECT experiment_id FROM best_trials WHERE is_due LIMIT 100 FOR UPDATE SKIP LOCKED LOOP
        BEGIN
            PERFORM keep_best_trial(e);
        EXCEPTION
            WHEN deadlock_detected OR lock_not_available THEN
                NULL; -- another time
            WHEN OTHERS THEN
                RAISE WARNING 'the best trial of experiment %: %', e, SQLERRM;
                UPDATE best_trials SET is_due = false, trial_id = (SELECT best_trial_id FROM experiments WHERE id = e), has_numbers = false
                    WHERE experiment_id = e;
        END;
        EXIT WHEN clock_timestamp() >= p_until;
    END LOOP;
    RETURN (SELECT count(*) FROM (SELECT FROM best_trials WHERE is_due LIMIT 1000) x);
END $$;
