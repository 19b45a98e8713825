-- Reports of thousands of metrics, in time proportional to their number: the reports of all trials share
-- one connection, so a slow one keeps every other waiting.

CREATE OR REPLACE FUNCTION summary_merge(old jsonb, g text, m jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    part jsonb := coalesce(old->g, '{}');
    gain jsonb;
BEGIN
    SELECT coalesce(jsonb_object_agg(n.key, summary_add(part->n.key, n.value)), '{}') INTO gain FROM jsonb_each(m) n;
    RETURN old || jsonb_build_object(g, part || gain);
END $$;

-- As before, but a repeat takes the kept metrics out of their row only once.
CREATE OR REPLACE FUNCTION report_metrics(p_trial integer, p_run integer, p_group text, p_steps integer, m jsonb,
                               p_time timestamptz) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    t record;
    old record;
    k text := metrics_key(p_group);
    clash text;
    gain jsonb;
    had jsonb; -- taken out of its row once: every time copies it
    row_id bigint;
    val double precision;
BEGIN
    SELECT x.id, x.run_id, x.experiment_id, x.searcher_metric_value, e.searcher_metric, e.smaller_is_better
        INTO t FROM trials x JOIN experiments e ON e.id = x.experiment_id WHERE x.id = p_trial FOR UPDATE OF x;
    IF NOT FOUND THEN
        RETURN 'unknown';
    ELSIF t.run_id <> p_run THEN
        RETURN 'stale';
    END IF;
    gain := m->k;
    SELECT id, metrics INTO old FROM metrics
        WHERE trial_id = p_trial AND grp = p_group AND run_id = p_run AND steps = p_steps;
    IF FOUND THEN
        had := old.metrics->k;
        SELECT n.key INTO clash FROM jsonb_each(m->k) n
            WHERE had ? n.key AND had->n.key <> n.value LIMIT 1;
        IF clash IS NOT NULL THEN
            RETURN 'overlap ' || clash;
        END IF;
        SELECT coalesce(jsonb_object_agg(n.key, n.value), '{}') INTO gain FROM jsonb_each(m->k) n
            WHERE NOT had ? n.key;
        row_id := old.id;
        IF gain = '{}' THEN
            RETURN '';
        END IF;
        UPDATE metrics SET metrics = old.metrics || m || jsonb_build_object(k, had || gain) WHERE id = row_id;
    ELSE
        UPDATE metrics SET archived = true WHERE trial_id = p_trial AND NOT archived AND run_id < p_run
            AND (steps > p_steps OR (steps = p_steps AND grp = p_group));
        IF FOUND THEN
            INSERT INTO metrics (trial_id, grp, run_id, steps, metrics, end_time)
                VALUES (p_trial, p_group, p_run, p_steps, m, p_time);
            PERFORM rebuild_trial(p_trial);
            UPDATE trials SET last_activity = p_time WHERE id = p_trial;
            RETURN '';
        END IF;
        INSERT INTO metrics (trial_id, grp, run_id, steps, metrics, end_time)
            VALUES (p_trial, p_group, p_run, p_steps, m, p_time) RETURNING id INTO row_id;
    END IF;
    IF p_group = 'validation' THEN
        val := searcher_value(m, t.searcher_metric);
    END IF;
    UPDATE trials SET total_batches = greatest(total_batches, p_steps), last_activity = p_time,
        summary_metrics = summary_merge(summary_metrics, summary_key(p_group), gain),
        latest_validation_id = CASE WHEN p_group = 'validation' AND m->k ? t.searcher_metric THEN row_id
                                    ELSE latest_validation_id END
        WHERE id = p_trial AND run_id = p_run;
    IF val IS NOT NULL AND (t.searcher_metric_value IS NULL
            OR CASE WHEN t.smaller_is_better THEN val < t.searcher_metric_value ELSE val > t.searcher_metric_value END) THEN
        UPDATE trials SET best_validation_id = row_id, searcher_metric_value = val WHERE id = p_trial;
        UPDATE experiments SET best_trial_id = p_trial, best_metric = val
            WHERE id = t.experiment_id AND (best_metric IS NULL
                OR CASE WHEN smaller_is_better THEN val < best_metric ELSE val > best_metric END);
    END IF;
    RETURN '';
END $$;
