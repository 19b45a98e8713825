-- The reports of a group commit as one statement: beginning a statement costs more than a row. And chunks made without
-- a sort per metric.

-- As before. Steps and times of the extremes are found by position, so that nothing depends on the rows' order.
CREATE OR REPLACE FUNCTION chunk_of_rows(p_trial integer, p_grp text, p_after integer, p_upto integer) RETURNS jsonb
    LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    RETURN (
    SELECT coalesce(jsonb_object_agg(x.key, CASE
        WHEN n > 0 AND n + nans = k THEN jsonb_build_array(n, total,
            jsonb_build_array(low, steps[low_at], times[low_at]),
            jsonb_build_array(high, steps[high_at], times[high_at]), last)
        ELSE jsonb_build_array(k, CASE WHEN n + nans = k THEN 'nan' WHEN n = 0 AND kind = kind2 THEN kind ELSE 'string' END,
                               last) END), '{}')
    FROM (SELECT y.*, array_position(nums, low) low_at, array_position(nums, high) high_at,
                 vals[array_position(steps, newest)] last
          FROM (SELECT key, count(*) k, count(num) n,
                       count(*) FILTER (WHERE num IS NULL AND metric_kind(value) = 'nan') nans,
                       min(metric_kind(value)) FILTER (WHERE num IS NULL) kind,
                       max(metric_kind(value)) FILTER (WHERE num IS NULL) kind2,
                       sum(least(greatest(num, -1e296), 1e296)) total, min(num) low, max(num) high, max(r.steps) newest,
                       array_agg(num) nums, array_agg(r.steps) steps, array_agg(at) times, array_agg(value) vals
                FROM (SELECT v.key, v.value, m.steps, date_part('epoch', m.end_time) at,
                             CASE WHEN jsonb_typeof(v.value) = 'number' THEN v.value::float8 END num
                      FROM metrics m, jsonb_each(m.metrics->metrics_key(m.grp)) v
                      WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
                        AND m.steps > p_after AND m.steps <= p_upto OFFSET 0) r -- each number is read once
                GROUP BY key) y) x);
END $$;

-- Which of these reports simply follow what their trials reported before: those of a trial all do, or none is said to,
-- and no more of a trial's than fill a chunk. The fence is held for all.
CREATE FUNCTION reports_that_follow(p_trial integer[], p_run integer[], p_group text[], p_steps integer[])
    RETURNS boolean[] LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    RETURN (
    WITH t AS MATERIALIZED (SELECT id, run_id FROM trials WHERE id = ANY (p_trial) FOR SHARE)
    SELECT array_agg(ok ORDER BY i) FROM (
        SELECT i, bool_and(ok) OVER (PARTITION BY trial) ok FROM (
            SELECT r.i, r.trial, coalesce(t.run_id = r.run AND h.run_id = r.run
                AND r.steps > greatest(h.steps, lag(r.steps) OVER w) AND row_number() OVER w <= 16, false) ok
            FROM unnest(p_trial, p_run, p_group, p_steps) WITH ORDINALITY r(trial, run, grp, steps, i)
            LEFT JOIN t ON t.id = r.trial LEFT JOIN metric_heads h ON h.trial_id = r.trial AND h.grp = r.grp
            WINDOW w AS (PARTITION BY r.trial, r.grp ORDER BY r.i)) x) y);
END $$;

-- report_metrics() of each report in turn: its answers, in order.
CREATE FUNCTION report_metrics_many(p_trial integer[], p_run integer[], p_group text[], p_steps integer[],
                                    p_metrics text[], p_time timestamptz[], p_batches text[])
    RETURNS SETOF text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    follows boolean[] := reports_that_follow(p_trial, p_run, p_group, p_steps);
    said text[] := array_fill(''::text, ARRAY[cardinality(p_trial)]);
    grown record;
    i integer;
BEGIN
    INSERT INTO metrics (trial_id, grp, run_id, steps, metrics, batch_metrics, end_time)
        SELECT trial, grp, run, steps, m::jsonb, batches, at
        FROM unnest(p_trial, p_group, p_run, p_steps, p_metrics, p_batches, p_time, follows)
             x(trial, grp, run, steps, m, batches, at, ok) WHERE ok;
    FOR grown IN UPDATE metric_heads h SET steps = x.steps, tail = tail + x.n
             FROM (SELECT trial, grp, max(steps) steps, count(*) n FROM unnest(p_trial, p_group, p_steps, follows)
                   r(trial, grp, steps, ok) WHERE ok GROUP BY 1, 2) x
             WHERE h.trial_id = x.trial AND h.grp = x.grp RETURNING h.trial_id, h.grp, h.tail LOOP
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
