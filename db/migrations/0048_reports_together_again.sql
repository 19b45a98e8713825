-- As in 0037, but that it works: "names" was a column of both tables of the UPDATE, so each group of reports was refused
-- and its reports written one by one.
CREATE OR REPLACE FUNCTION report_metrics_many(p_trial integer[], p_run integer[], p_group text[], p_steps integer[],
                                               p_metrics text[], p_time timestamptz[], p_batches text[])
    RETURNS SETOF text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    said text[] := array_fill(''::text, ARRAY[cardinality(p_trial)]);
    n integer[] := (SELECT array_agg(names_in_text(grp, m) ORDER BY i)
                    FROM unnest(p_group, p_metrics) WITH ORDINALITY x(grp, m, i));
    follows boolean[] := reports_that_follow(p_trial, p_run, p_group, p_steps, n);
    grown record;
    i integer;
BEGIN
    INSERT INTO metrics (trial_id, grp, run_id, steps, metrics, batch_metrics, end_time)
        SELECT trial, grp, run, steps, m::jsonb, batches, at
        FROM unnest(p_trial, p_group, p_run, p_steps, p_metrics, p_batches, p_time, follows)
             x(trial, grp, run, steps, m, batches, at, ok) WHERE ok;
    FOR grown IN UPDATE metric_heads h SET steps = x.steps, tail = h.tail + x.n, names = h.names + x.names
             FROM (SELECT trial, grp, max(steps) steps, count(*) n, sum(names) names
                   FROM unnest(p_trial, p_group, p_steps, n, follows) r(trial, grp, steps, names, ok) WHERE ok GROUP BY 1, 2) x
             WHERE h.trial_id = x.trial AND h.grp = x.grp RETURNING h.trial_id, h.grp, h.tail LOOP
        UPDATE trials SET has_tail = true WHERE id = grown.trial_id AND NOT has_tail
            AND state IN ('COMPLETED', 'CANCELED', 'ERROR');
        IF grown.tail >= 16 THEN
            PERFORM close_chunk(grown.trial_id, grown.grp);
        END IF;
    END LOOP;
    FOR i IN 1 .. cardinality(p_trial) LOOP
        IF NOT follows[i] THEN
            said[i] := report_metrics(p_trial[i], p_run[i], p_group[i], p_steps[i], p_metrics[i]::jsonb, p_time[i],
                                      p_batches[i]);
        ELSIF p_group[i] = 'validation' THEN
            PERFORM note_validation(p_trial[i], p_run[i], p_steps[i]);
        END IF;
    END LOOP;
    RETURN QUERY SELECT unnest(said);
END $$;
