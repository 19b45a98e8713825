-- A run that goes on from an earlier checkpoint takes back what runs before it reported beyond that.

-- Chunks, heads and summary of a trial from its live rows beyond p_steps, where p_grp keeps those below only, and with
-- what was kept of deleted reports. Of those that are rolled back nothing can be taken off the summary.
CREATE OR REPLACE FUNCTION reopen_chunks(p_trial integer, p_grp text, p_steps integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    h metric_heads;
    d jsonb;
    s jsonb := '{}';
    batches integer := 0;
BEGIN
    FOR h IN SELECT * FROM metric_heads WHERE trial_id = p_trial LOOP
        DELETE FROM metric_chunks WHERE trial_id = p_trial AND grp = h.grp
            AND last_steps > p_steps - (h.grp = p_grp)::integer;
        IF h.kept_steps > p_steps - (h.grp = p_grp)::integer THEN
            h.kept_steps := p_steps - (h.grp = p_grp)::integer;
        END IF;
        SELECT coalesce(max(seq) + 1, 0), greatest(max(last_steps), h.kept_steps, -1) INTO h.closed, h.closed_steps
            FROM metric_chunks WHERE trial_id = p_trial AND grp = h.grp AND level = 1;
        SELECT count(*), coalesce(max(steps), h.closed_steps) INTO h.tail, h.steps FROM metrics
            WHERE trial_id = p_trial AND grp = h.grp AND NOT archived AND steps > h.closed_steps;
        UPDATE metric_heads SET steps = h.steps, closed = h.closed, closed_steps = h.closed_steps, tail = h.tail,
            kept_steps = h.kept_steps WHERE trial_id = p_trial AND grp = h.grp;
        batches := greatest(batches, h.closed_steps);
        IF h.kept IS NOT NULL THEN
            s := s || jsonb_build_object(summary_key(h.grp), h.kept);
        END IF;
        FOR d IN SELECT doc FROM chunk_cover(p_trial, h.grp, h.closed) WHERE h.kept IS NULL
                 UNION ALL (SELECT doc FROM metric_chunks WHERE h.kept IS NOT NULL AND trial_id = p_trial AND grp = h.grp
                            AND level = 1 AND after_steps >= h.kept_steps ORDER BY seq) LOOP
            s := summary_merge_chunk(s, summary_key(h.grp), d);
        END LOOP;
    END LOOP;
    UPDATE trials SET summary_metrics = s, closed_batches = batches WHERE id = p_trial;
    PERFORM close_chunk(p_trial, grp) FROM metric_heads WHERE trial_id = p_trial AND tail >= 16;
END $$;

-- A newer run reports: what older runs reported beyond its steps is archived. Of what was deleted the head alone tells
-- that it is rolled back. Of steps that are kept nobody may have reported any more: they are doubtful.
CREATE OR REPLACE FUNCTION roll_back(p_trial integer, p_run integer, p_grp text, p_steps integer) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    UPDATE metrics SET archived = true WHERE trial_id = p_trial AND NOT archived AND run_id < p_run
        AND steps >= p_steps AND (steps > p_steps OR grp = p_grp);
    IF FOUND OR EXISTS (SELECT 1 FROM metric_heads WHERE trial_id = p_trial AND run_id < p_run
                        AND kept_steps > p_steps - (grp = p_grp)::integer) THEN
        UPDATE metric_steps k SET doubtful = true FROM trials t
            WHERE t.id = p_trial AND k.experiment_id = t.experiment_id AND k.steps >= p_steps
            AND (k.steps > p_steps OR k.grp = p_grp) AND (k.trial_id = p_trial OR k.trial_id IS NULL) AND NOT k.doubtful;
        PERFORM reopen_chunks(p_trial, p_grp, p_steps);
        PERFORM refresh_validations(p_trial);
    END IF;
END $$;
