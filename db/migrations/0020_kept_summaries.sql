-- A trial whose reports were deleted for their age may be continued, and rolled back then: what its summary holds of
-- the deleted is kept, so that it can be made again from what is there.
ALTER TABLE metric_heads
    ADD COLUMN kept jsonb,         -- the group's summary when its reports were deleted; null: all of them are there
    ADD COLUMN kept_steps integer; -- it holds them up to here

UPDATE metric_heads h SET kept = t.summary_metrics->summary_key(h.grp), kept_steps = h.closed_steps
    FROM trials t WHERE t.id = h.trial_id AND t.state IN ('COMPLETED', 'CANCELED', 'ERROR') AND h.closed > 0
    AND NOT EXISTS (SELECT 1 FROM metric_chunks c WHERE c.trial_id = h.trial_id AND c.grp = h.grp);

-- As before, and with what was kept. Of deleted reports that are rolled back nothing can be taken off the summary.
CREATE OR REPLACE FUNCTION reopen_chunks(p_trial integer, p_grp text, p_steps integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    h metric_heads;
    d jsonb;
    s jsonb := '{}';
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
        IF h.kept IS NOT NULL THEN
            s := s || jsonb_build_object(summary_key(h.grp), h.kept);
        END IF;
        FOR d IN SELECT doc FROM chunk_cover(p_trial, h.grp, h.closed) WHERE h.kept IS NULL
                 UNION ALL (SELECT doc FROM metric_chunks WHERE h.kept IS NOT NULL AND trial_id = p_trial AND grp = h.grp
                            AND level = 1 AND after_steps >= h.kept_steps ORDER BY seq) LOOP
            s := summary_merge_chunk(s, summary_key(h.grp), d);
        END LOOP;
    END LOOP;
    UPDATE trials SET summary_metrics = s WHERE id = p_trial;
    PERFORM close_chunk(p_trial, grp) FROM metric_heads WHERE trial_id = p_trial AND tail >= 16;
END $$;

-- As before; of what was deleted the head alone tells that it is rolled back.
CREATE OR REPLACE FUNCTION roll_back(p_trial integer, p_run integer, p_grp text, p_steps integer) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    UPDATE metrics SET archived = true WHERE trial_id = p_trial AND NOT archived AND run_id < p_run
        AND steps >= p_steps AND (steps > p_steps OR grp = p_grp);
    IF FOUND OR EXISTS (SELECT 1 FROM metric_heads WHERE trial_id = p_trial AND run_id < p_run
                        AND kept_steps > p_steps - (grp = p_grp)::integer) THEN
        PERFORM reopen_chunks(p_trial, p_grp, p_steps);
        PERFORM refresh_validations(p_trial);
    END IF;
END $$;
