-- What has to happen inside one statement: the leader's check and the reports of trials.

-- Every writing transaction starts with it. The share lock makes a new leader's raise of the epoch wait
-- for transactions under way, so none of an old leader can commit after the new one began.
CREATE FUNCTION check_epoch(p_epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM cluster WHERE epoch = p_epoch FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another master leads since epoch %', p_epoch USING ERRCODE = 'DE001';
    END IF;
END $$;

-- Begins a unit of several statements that only the trial's current run may write.
CREATE FUNCTION fence_trial(p_trial bigint, p_run bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM trials WHERE id = p_trial AND run_id = p_run FOR UPDATE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'trial % is not at run % any more', p_trial, p_run USING ERRCODE = 'DE002';
    END IF;
END $$;

-- Time as the API writes it: RFC 3339, UTC, microseconds.
CREATE FUNCTION api_time(t timestamptz) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- One metric's summary after one more value v.
CREATE FUNCTION summary_add(old jsonb, v jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    n bigint := coalesce((old->>'count')::bigint, 0) + 1;
    kind text := jsonb_typeof(v);
    x double precision;
    total double precision;
BEGIN
    IF kind <> 'number' OR coalesce(old->>'type', 'number') <> 'number' THEN
        IF kind = 'string' AND old->>'type' = 'number' AND v #>> '{}' IN ('NaN', 'Infinity', '-Infinity') THEN
            RETURN old || jsonb_build_object('last', v);
        END IF;
        RETURN jsonb_build_object('type', CASE WHEN old IS NULL OR old->>'type' = kind THEN kind ELSE 'string' END,
                                  'count', n, 'last', v);
    END IF;
    x := v::text::double precision;
    IF old->'sum' IS NULL THEN
        RETURN jsonb_build_object('type', 'number', 'count', n, 'min', x, 'max', x, 'sum', x, 'mean', x, 'last', v);
    END IF;
    total := (old->>'sum')::double precision;
    IF abs(total) > 8e307 OR abs(x) > 8e307 THEN
        total := sign(x) * 1.7e308; -- near the end of the range: better a wrong sum than a refused report
    ELSE
        total := total + x;
    END IF;
    RETURN jsonb_build_object('type', 'number', 'count', n,
        'min', least((old->>'min')::double precision, x), 'max', greatest((old->>'max')::double precision, x),
        'sum', total, 'mean', total / n, 'last', v);
END $$;

-- Summaries (by group key, then metric) after one more report of group key g.
CREATE FUNCTION summary_merge(old jsonb, g text, m jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    part jsonb := coalesce(old->g, '{}');
    r record;
    gain jsonb := '{}';
BEGIN
    FOR r IN SELECT key, value FROM jsonb_each(m) LOOP
        gain := gain || jsonb_build_object(r.key, summary_add(part->r.key, r.value));
    END LOOP;
    RETURN old || jsonb_build_object(g, part || gain);
END $$;

CREATE FUNCTION metrics_key(grp text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE grp WHEN 'validation' THEN 'validation_metrics' ELSE 'avg_metrics' END
$$;
CREATE FUNCTION summary_key(grp text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE grp WHEN 'validation' THEN 'validation_metrics' WHEN 'training' THEN 'avg_metrics' ELSE grp END
$$;

-- The number a validation row gives for the searcher's metric; null when it has none.
CREATE FUNCTION searcher_value(m jsonb, metric text) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN jsonb_typeof(m->'validation_metrics'->metric) = 'number'
                THEN (m->'validation_metrics'->>metric)::double precision END
$$;

-- The experiment's best trial, anew.
CREATE FUNCTION refresh_best_trial(p_experiment integer) RETURNS void LANGUAGE sql AS $$
    UPDATE experiments e SET (best_trial_id, best_metric) =
        (SELECT t.id, t.searcher_metric_value FROM trials t
         WHERE t.experiment_id = e.id AND t.searcher_metric_value IS NOT NULL
         ORDER BY CASE WHEN e.smaller_is_better THEN t.searcher_metric_value ELSE -t.searcher_metric_value END, t.id
         LIMIT 1)
    WHERE e.id = p_experiment
$$;

-- Everything that follows from a trial's live metric rows, anew: after a roll-back.
CREATE FUNCTION rebuild_trial(p_trial integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r record;
    s jsonb := '{}';
    e record;
BEGIN
    SELECT x.* INTO e FROM experiments x JOIN trials t ON t.experiment_id = x.id WHERE t.id = p_trial;
    FOR r IN SELECT grp, metrics FROM metrics WHERE trial_id = p_trial AND NOT archived ORDER BY steps, id LOOP
        s := summary_merge(s, summary_key(r.grp), r.metrics->metrics_key(r.grp));
    END LOOP;
    UPDATE trials t SET summary_metrics = s,
        total_batches = coalesce((SELECT max(steps) FROM metrics WHERE trial_id = p_trial AND NOT archived), 0),
        latest_validation_id = (SELECT id FROM metrics m WHERE m.trial_id = p_trial AND NOT archived AND grp = 'validation'
            AND m.metrics->'validation_metrics' ? e.searcher_metric ORDER BY steps DESC, id DESC LIMIT 1),
        (best_validation_id, searcher_metric_value) =
            (SELECT m.id, searcher_value(m.metrics, e.searcher_metric) FROM metrics m
             WHERE m.trial_id = p_trial AND NOT archived AND grp = 'validation'
               AND searcher_value(m.metrics, e.searcher_metric) IS NOT NULL
             ORDER BY CASE WHEN e.smaller_is_better THEN 1 ELSE -1 END * searcher_value(m.metrics, e.searcher_metric), m.steps
             LIMIT 1)
    WHERE t.id = p_trial;
    PERFORM refresh_best_trial(e.id);
END $$;

-- One report. m: {avg_metrics | validation_metrics, batch_metrics?}. Returns '' when it is kept (or was
-- kept before), else 'unknown', 'stale', or 'overlap <metric>'.
CREATE FUNCTION report_metrics(p_trial integer, p_run integer, p_group text, p_steps integer, m jsonb,
                               p_time timestamptz) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    t record;
    old record;
    k text := metrics_key(p_group);
    clash text;
    gain jsonb;
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
        SELECT n.key INTO clash FROM jsonb_each(m->k) n
            WHERE old.metrics->k ? n.key AND old.metrics->k->n.key <> n.value LIMIT 1;
        IF clash IS NOT NULL THEN
            RETURN 'overlap ' || clash;
        END IF;
        SELECT coalesce(jsonb_object_agg(n.key, n.value), '{}') INTO gain FROM jsonb_each(m->k) n
            WHERE NOT old.metrics->k ? n.key;
        row_id := old.id;
        IF gain = '{}' THEN
            RETURN '';
        END IF;
        UPDATE metrics SET metrics = old.metrics || m || jsonb_build_object(k, old.metrics->k || gain) WHERE id = row_id;
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
