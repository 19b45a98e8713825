-- An experiment that is being deleted: its rows go in portions, so that nobody waits for them. What has gone is how far it
-- is: a portion begins with whatever is left, also after another master has taken over.

-- At most so many rows of one kind, of a trial; how many. 0: nothing hangs on it that could be many.
CREATE OR REPLACE FUNCTION delete_portion_of_trial(p_trial integer, p_task text, p_rows integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    DELETE FROM metrics d USING (SELECT grp, steps, run_id FROM metrics WHERE trial_id = p_trial LIMIT p_rows) k
        WHERE d.trial_id = p_trial AND d.grp = k.grp AND d.steps = k.steps AND d.run_id = k.run_id;
    GET DIAGNOSTICS n = ROW_COUNT;
    IF n = 0 THEN
        DELETE FROM metric_chunks d USING (SELECT grp, level, seq FROM metric_chunks WHERE trial_id = p_trial LIMIT p_rows) k
            WHERE d.trial_id = p_trial AND d.grp = k.grp AND d.level = k.level AND d.seq = k.seq;
        GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    IF n = 0 THEN
        DELETE FROM task_logs WHERE ctid = ANY (ARRAY(SELECT ctid FROM task_logs WHERE task_id = p_task LIMIT p_rows));
        GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    IF n = 0 THEN
        DELETE FROM log_marks WHERE ctid = ANY (ARRAY(SELECT ctid FROM log_marks WHERE task_id = p_task LIMIT p_rows));
        GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    IF n = 0 THEN
        DELETE FROM webhook_log_hits
            WHERE ctid = ANY (ARRAY(SELECT ctid FROM webhook_log_hits WHERE task_id = p_task LIMIT p_rows));
        GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    IF n = 0 THEN
        DELETE FROM profiler_metrics
            WHERE ctid = ANY (ARRAY(SELECT ctid FROM profiler_metrics WHERE trial_id = p_trial LIMIT p_rows));
        GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    IF n = 0 THEN
        DELETE FROM trial_timeline
            WHERE ctid = ANY (ARRAY(SELECT ctid FROM trial_timeline WHERE trial_id = p_trial LIMIT p_rows));
        GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    IF n = 0 THEN
        DELETE FROM checkpoints WHERE ctid = ANY (ARRAY(SELECT ctid FROM checkpoints WHERE trial_id = p_trial LIMIT p_rows));
        GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    IF n = 0 THEN
        DELETE FROM allocations WHERE ctid = ANY (ARRAY(SELECT ctid FROM allocations WHERE trial_id = p_trial LIMIT p_rows));
        GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    RETURN n;
END $$;

-- The same of what is the experiment's as a whole, without its trials.
CREATE OR REPLACE FUNCTION delete_portion_beside_trials(p_experiment integer, p_rows integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    n integer;
BEGIN
    DELETE FROM task_logs WHERE ctid = ANY (ARRAY(SELECT l.ctid FROM allocations a JOIN task_logs l USING (task_id)
        WHERE a.experiment_id = p_experiment LIMIT p_rows)); -- of collections
    GET DIAGNOSTICS n = ROW_COUNT;
    IF n = 0 THEN
        DELETE FROM webhook_log_hits WHERE ctid = ANY (ARRAY(SELECT h.ctid FROM allocations a JOIN webhook_log_hits h USING (task_id)
            WHERE a.experiment_id = p_experiment LIMIT p_rows));
        GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    IF n = 0 THEN
        DELETE FROM metric_steps
            WHERE ctid = ANY (ARRAY(SELECT ctid FROM metric_steps WHERE experiment_id = p_experiment LIMIT p_rows));
        GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    IF n = 0 THEN
        DELETE FROM search_events
            WHERE ctid = ANY (ARRAY(SELECT ctid FROM search_events WHERE experiment_id = p_experiment LIMIT p_rows));
        GET DIAGNOSTICS n = ROW_COUNT;
    END IF;
    IF n = 0 THEN
        DELETE FROM trial_blocks
            WHERE ctid = ANY (ARRAY(SELECT ctid FROM trial_blocks WHERE experiment_id = p_experiment LIMIT p_rows / 100 + 1));
        GET DIAGNOSTICS n = ROW_COUNT;
        n := n * 100; -- of sums hang on each
    END IF;
    RETURN n;
END $$;

-- One portion: whether what is left goes with the experiment's own row, and how many trials are left. Names of metrics go
-- first: else each trial that goes would count down all of them. Sums of blocks go after the trials: those that are left
-- are found by them. What takes long, be it ever so few rows, ends a portion too: there is no more room.
CREATE OR REPLACE FUNCTION delete_portion(p_experiment integer, p_rows integer, OUT is_last boolean, OUT trials_left bigint)
    LANGUAGE plpgsql AS $$
DECLARE
    until CONSTANT timestamptz := clock_timestamp() + interval '0.5 s';
    at_once CONSTANT integer := 200; -- rows; between them the time is looked at
    room integer := p_rows;
    n integer;
    t record;
BEGIN
    PERFORM note_last_ids(p_experiment);
    DELETE FROM metric_names WHERE ctid = ANY (ARRAY(SELECT ctid FROM metric_names WHERE experiment_id = p_experiment LIMIT room));
    GET DIAGNOSTICS n = ROW_COUNT;
    room := room - n;
    FOR t IN SELECT id, task_id FROM trials WHERE experiment_id = p_experiment AND room > 0 ORDER BY id LIMIT p_rows LOOP
        LOOP
            EXIT WHEN room <= 0;
            n := delete_portion_of_trial(t.id, t.task_id, least(room, at_once));
            EXIT WHEN n = 0;
            room := CASE WHEN clock_timestamp() < until THEN room - n ELSE 0 END;
        END LOOP;
        EXIT WHEN room <= 0;
        DELETE FROM trials WHERE id = t.id;
        room := CASE WHEN clock_timestamp() < until THEN room - 1 ELSE 0 END;
    END LOOP;
    WHILE room > 0 LOOP
        n := delete_portion_beside_trials(p_experiment, least(room, at_once));
        EXIT WHEN n = 0;
        room := CASE WHEN clock_timestamp() < until THEN room - n ELSE 0 END;
    END LOOP;
    is_last := room > 0;
    trials_left := (SELECT count(*) FROM trials WHERE experiment_id = p_experiment);
END $$;
