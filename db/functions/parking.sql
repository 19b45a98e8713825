-- What ends because the database refuses a row of it.

-- What the database refused a row of ends in ERROR; no other row of it is written by the master that met this.
CREATE OR REPLACE FUNCTION parked_state(p_state text, p_has_ended boolean) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE
        WHEN p_state = 'DELETING' THEN CASE WHEN p_has_ended THEN 'DELETE_FAILED' ELSE p_state END
        WHEN is_terminal(p_state) THEN p_state
        WHEN p_has_ended THEN 'ERROR'
        ELSE 'STOPPING_ERROR' END
$$;

-- Ends the trial, or the experiment with all its trials (p_trial 0).
CREATE OR REPLACE FUNCTION set_parked(p_exp integer, p_trial integer, p_has_ended boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE allocations SET state = 'TERMINATED', end_time = now(), exit_reason = 'the database refused a row of it'
        WHERE state <> 'TERMINATED' AND CASE WHEN p_trial > 0 THEN trial_id = p_trial ELSE experiment_id = p_exp END;
    UPDATE trials SET state = parked_state(state, p_has_ended), last_activity = now(),
        end_time = CASE WHEN p_has_ended THEN coalesce(end_time, now()) ELSE end_time END
        WHERE CASE WHEN p_trial > 0 THEN id = p_trial ELSE experiment_id = p_exp END
        AND state <> parked_state(state, p_has_ended);
    UPDATE experiments SET state = parked_state(state, p_has_ended),
        end_time = CASE WHEN p_has_ended THEN coalesce(end_time, now()) ELSE end_time END
        WHERE p_trial = 0 AND id = p_exp AND state <> parked_state(state, p_has_ended);
END $$;

-- A trigger may be what refuses, or takes longer than a statement may: then without those of the three tables. Nobody else writes meanwhile, who reads may
-- go on.
CREATE OR REPLACE FUNCTION park(p_exp integer, p_trial integer, p_has_ended boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    t record;
    off text[] := '{}';
    cmd text;
BEGIN
    PERFORM set_parked(p_exp, p_trial, p_has_ended);
EXCEPTION WHEN query_canceled OR OTHERS THEN
    RAISE WARNING 'experiment %, trial % end in ERROR without their triggers: %', p_exp, p_trial, SQLERRM;
    FOR t IN SELECT tgrelid::regclass AS rel, tgname FROM pg_trigger
            WHERE tgrelid IN ('trials'::regclass, 'experiments'::regclass, 'allocations'::regclass)
            AND NOT tgisinternal AND tgenabled = 'O' LOOP
        EXECUTE format('ALTER TABLE %s DISABLE TRIGGER %I', t.rel, t.tgname);
        off := off || format('ALTER TABLE %s ENABLE TRIGGER %I', t.rel, t.tgname);
    END LOOP;
    PERFORM set_parked(p_exp, p_trial, p_has_ended);
    FOREACH cmd IN ARRAY off LOOP
        EXECUTE cmd;
    END LOOP;
END $$;
