-- A sample of an experiment's trials is chosen by one metric: only that one's tail is summed up, not all ten's. And the
-- trials that may have a tail are found: of 5,000 they are few.

CREATE INDEX trials_tails ON trials (experiment_id, id) WHERE has_tail OR state NOT IN ('COMPLETED', 'CANCELED', 'ERROR');

-- As in 0017, of all metrics or of one; and what is no number is not in the sum: a NaN among numbers made it -1e296.
DROP FUNCTION chunk_of_rows;
CREATE FUNCTION chunk_of_rows(p_trial integer, p_grp text, p_after integer, p_upto integer, p_name text DEFAULT NULL) RETURNS jsonb
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
                       sum(least(greatest(num, -1e296), 1e296)) FILTER (WHERE num IS NOT NULL) total,
                       min(num) low, max(num) high, max(r.steps) newest,
                       array_agg(num) nums, array_agg(r.steps) steps, array_agg(at) times, array_agg(value) vals
                FROM (SELECT v.key, v.value, m.steps, date_part('epoch', m.end_time) at,
                             CASE WHEN jsonb_typeof(v.value) = 'number' THEN v.value::float8 END num
                      FROM metrics m, LATERAL (SELECT m.metrics->metrics_key(m.grp) all_of_it OFFSET 0) o,
                           jsonb_each(CASE WHEN p_name IS NULL THEN o.all_of_it
                                           WHEN o.all_of_it ? p_name THEN jsonb_build_object(p_name, o.all_of_it->p_name) END) v
                      WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
                        AND m.steps > p_after AND m.steps <= p_upto OFFSET 0) r -- each number is read once
                GROUP BY key) y) x);
END $$;

-- trial_summary(p_trial, kept)->summary_key(p_grp)->p_name.
CREATE FUNCTION metric_summary(p_trial integer, kept jsonb, p_grp text, p_name text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    h metric_heads;
    c jsonb;
    s jsonb := kept->summary_key(p_grp)->p_name;
BEGIN
    FOR h IN SELECT * FROM metric_heads WHERE trial_id = p_trial AND tail > 0 AND summary_key(grp) = summary_key(p_grp) LOOP
        c := chunk_of_rows(p_trial, h.grp, h.closed_steps, h.steps, p_name)->p_name;
        s := CASE WHEN c IS NULL THEN s ELSE summary_after(s, c) END;
    END LOOP;
    RETURN s;
END $$;
