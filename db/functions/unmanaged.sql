-- Trainings that run elsewhere and report here. One connection writes, one request after the other: with several
-- these functions would wait for each other's rows.

-- Holds the experiment, so that its trials change one after the other, and goes on with it.
CREATE OR REPLACE FUNCTION unmanaged_wake(p_exp integer) RETURNS void AS $$
DECLARE
    e record;
BEGIN
    SELECT unmanaged, archived, state INTO e FROM experiments WHERE id = p_exp FOR NO KEY UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'experiment % not found', p_exp USING ERRCODE = 'DE003';
    ELSIF NOT e.unmanaged THEN
        RAISE EXCEPTION 'experiment % runs on this cluster, which makes and ends its trials; only those of an unmanaged experiment are a client''s', p_exp
            USING ERRCODE = 'DE004';
    ELSIF e.archived THEN
        RAISE EXCEPTION 'experiment % is archived: unarchive it first', p_exp USING ERRCODE = 'DE004';
    ELSIF e.state <> 'ACTIVE' AND NOT has_ended(e.state) THEN
        RAISE EXCEPTION 'experiment % is %', p_exp, e.state USING ERRCODE = 'DE004';
    ELSIF e.state <> 'ACTIVE' THEN
        UPDATE experiments SET state = 'ACTIVE', end_time = NULL WHERE id = p_exp;
    END IF;
END $$ LANGUAGE plpgsql;

-- Ends it when none of its trials runs.
CREATE OR REPLACE FUNCTION unmanaged_settle(p_exp integer) RETURNS void AS $$
    UPDATE experiments e SET end_time = now(), state = CASE WHEN t.errors = t.n THEN 'ERROR'
        WHEN t.canceled = t.n THEN 'CANCELED' ELSE 'COMPLETED' END
    FROM (SELECT count(*) n, count(*) FILTER (WHERE state = 'ERROR') errors, count(*) FILTER (WHERE state = 'CANCELED') canceled,
        count(heartbeat) running FROM trials WHERE experiment_id = p_exp) t
    WHERE e.id = p_exp AND e.state = 'ACTIVE' AND t.running = 0
$$ LANGUAGE sql;

-- The trial's id: one of that external id if there is one already, else p_id.
CREATE OR REPLACE FUNCTION unmanaged_trial(p_id integer, p_exp integer, p_external text, p_request text, p_task text, p_hparams jsonb)
RETURNS integer AS $$
DECLARE
    known integer;
BEGIN
    SELECT id INTO known FROM trials WHERE experiment_id = p_exp AND external_id = p_external;
    IF FOUND THEN
        RETURN known;
    END IF;
    PERFORM unmanaged_wake(p_exp);
    INSERT INTO trials (id, experiment_id, request_id, task_id, state, hparams, start_time, external_id, heartbeat)
    VALUES (p_id, p_exp, p_request, p_task, 'ACTIVE', p_hparams, now(), p_external, now())
    ON CONFLICT (experiment_id, external_id) WHERE external_id IS NOT NULL DO NOTHING;
    IF NOT FOUND THEN -- made in the meantime
        SELECT id INTO known FROM trials WHERE experiment_id = p_exp AND external_id = p_external;
        RETURN known;
    END IF;
    RETURN p_id;
END $$ LANGUAGE plpgsql;

-- The experiment of a trial, which must be there.
CREATE OR REPLACE FUNCTION unmanaged_exp_of(p_trial integer) RETURNS integer AS $$
DECLARE
    e integer;
BEGIN
    SELECT experiment_id INTO e FROM trials WHERE id = p_trial;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'trial % not found', p_trial USING ERRCODE = 'DE003';
    END IF;
    RETURN e;
END $$ LANGUAGE plpgsql;

-- A new run of it: whatever an earlier one still reports is refused. With p_resume, from which checkpoint it goes on.
CREATE OR REPLACE FUNCTION unmanaged_start(p_trial integer, p_resume boolean, OUT run integer, OUT checkpoint text, OUT steps integer) AS $$
BEGIN
    PERFORM unmanaged_wake(unmanaged_exp_of(p_trial));
    UPDATE trials t SET run_id = run_id + 1, restarts = restarts + (run_id > 0)::integer, state = 'ACTIVE', end_time = NULL,
        heartbeat = now(), last_activity = now() WHERE id = p_trial RETURNING t.run_id INTO run;
    IF p_resume THEN
        SELECT c.uuid, c.steps INTO checkpoint, steps FROM checkpoints c WHERE c.trial_id = p_trial AND c.state = 'COMPLETED'
        ORDER BY c.steps DESC, c.report_time DESC LIMIT 1;
    END IF;
    steps := coalesce(steps, 0);
END $$ LANGUAGE plpgsql;

-- p_state: null of a heartbeat; p_run: null where the client does not say. One that was given up for its silence
-- lives again when it is heard of.
CREATE OR REPLACE FUNCTION unmanaged_said(p_trial integer, p_run integer, p_state text) RETURNS void AS $$
DECLARE
    e integer;
    r integer;
BEGIN
    SELECT run_id INTO r FROM trials WHERE id = p_trial;
    IF r <> p_run THEN
        RAISE EXCEPTION 'run % of trial % was replaced by run %', p_run, p_trial, r USING ERRCODE = 'DE002';
    END IF;
    IF p_state IS NULL THEN
        UPDATE trials SET heartbeat = now() WHERE id = p_trial AND heartbeat IS NOT NULL;
        IF FOUND THEN
            RETURN;
        END IF;
    END IF;
    e := unmanaged_exp_of(p_trial);
    IF has_ended(p_state) THEN
        PERFORM unmanaged_wake(e);
        UPDATE trials SET state = p_state, end_time = now(), heartbeat = NULL WHERE id = p_trial;
        PERFORM unmanaged_settle(e);
    ELSIF p_state IS NOT NULL OR EXISTS (SELECT 1 FROM trials WHERE id = p_trial AND state = 'ERROR') THEN
        PERFORM unmanaged_wake(e);
        UPDATE trials SET state = 'ACTIVE', end_time = NULL, heartbeat = now() WHERE id = p_trial;
    ELSE
        PERFORM 1 FROM experiments WHERE id = e AND unmanaged;
        IF NOT FOUND THEN
            PERFORM unmanaged_wake(e); -- says why not
        END IF;
    END IF;
END $$ LANGUAGE plpgsql;

-- Ends those not heard of for p_s seconds, a hundred at most; how many.
CREATE OR REPLACE FUNCTION unmanaged_silent(p_s integer) RETURNS integer AS $$
DECLARE
    since timestamptz := now() - make_interval(secs => p_s);
    t record;
    n integer := 0;
BEGIN
    FOR t IN SELECT id, experiment_id, task_id FROM trials WHERE heartbeat < since ORDER BY experiment_id, id LIMIT 100 LOOP
        PERFORM 1 FROM experiments WHERE id = t.experiment_id FOR NO KEY UPDATE;
        UPDATE trials SET state = 'ERROR', end_time = now(), heartbeat = NULL WHERE id = t.id AND heartbeat < since;
        IF FOUND THEN
            INSERT INTO task_logs (task_id, time, level, source, log) VALUES (t.task_id, now(), 5, 'master',
                format('Trial %s is given up: nothing was heard of it for %s s. It goes on when its next heartbeat comes.', t.id, p_s));
            PERFORM unmanaged_settle(t.experiment_id);
            n := n + 1;
        END IF;
    END LOOP;
    UPDATE experiments e SET state = 'ERROR', end_time = now() WHERE unmanaged AND state = 'ACTIVE' AND start_time < since
        AND NOT EXISTS (SELECT 1 FROM trials WHERE experiment_id = e.id AND heartbeat IS NOT NULL);
    RETURN n;
END $$ LANGUAGE plpgsql;
