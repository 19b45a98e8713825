-- Trials.

-- Begins a unit of several statements that only the trial's current run may write.
CREATE OR REPLACE FUNCTION fence_trial(p_trial bigint, p_run bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM trials WHERE id = p_trial AND run_id = p_run FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'trial % is not at run % any more', p_trial, p_run USING ERRCODE = 'DE002';
    END IF;
END $$;

-- How far a trial has reported.
CREATE OR REPLACE FUNCTION trial_batches(p_trial integer) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT greatest(max(steps), 0) FROM metric_heads WHERE trial_id = p_trial);
END $$;
