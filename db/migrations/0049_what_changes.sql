-- What a group of reports and a full chunk cost: what hardly ever changes is looked at before it is made anew.

-- As in 0037; mostly the names of a report are known at its steps, by what others reported there.
CREATE OR REPLACE FUNCTION keep_steps(p_trial integer, p_grp text, p_after integer, p_upto integer) RETURNS void
    LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    e integer := (SELECT experiment_id FROM trials WHERE id = p_trial);
BEGIN
    IF NOT EXISTS (SELECT FROM metrics m LEFT JOIN metric_steps o
                       ON o.experiment_id = e AND o.grp = p_grp AND o.steps = m.steps AND NOT o.doubtful
                   WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
                     AND m.steps > p_after AND m.steps <= p_upto
                     AND (o.names IS NULL OR (m.metrics->metrics_key(p_grp)) - o.names <> '{}')) THEN
        RETURN;
    END IF;
    INSERT INTO metric_steps AS k (experiment_id, grp, steps, names, trial_id, id)
        SELECT DISTINCT ON (r.steps) e, p_grp, r.steps, r.names, p_trial, r.id
        FROM (SELECT m.steps, m.id, number_names(m.metrics->metrics_key(p_grp)) names FROM metrics m
              WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
                AND m.steps > p_after AND m.steps <= p_upto OFFSET 0) r
        LEFT JOIN metric_steps o ON o.experiment_id = e AND o.grp = p_grp AND o.steps = r.steps
        WHERE cardinality(r.names) > 0 AND (o.steps IS NULL OR o.doubtful OR NOT o.names @> r.names)
        ORDER BY r.steps, r.id DESC
        ON CONFLICT (experiment_id, grp, steps) DO UPDATE SET id = excluded.id,
            names = ARRAY(SELECT unnest(k.names) UNION SELECT unnest(excluded.names) ORDER BY 1),
            trial_id = CASE WHEN excluded.names @> k.names THEN excluded.trial_id END,
            doubtful = k.doubtful AND NOT excluded.names @> k.names;
END $$;

-- As in 0045; mostly a summary gets no new names.
CREATE OR REPLACE FUNCTION name_metrics() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    had jsonb := CASE WHEN TG_OP = 'INSERT' THEN '{}' ELSE OLD.summary_metrics END;
    has jsonb := CASE WHEN TG_OP = 'DELETE' THEN '{}' ELSE NEW.summary_metrics END;
BEGIN
    IF TG_OP = 'UPDATE' AND ARRAY(SELECT (g.key, k) FROM jsonb_each(had) g, jsonb_object_keys(g.value) k)
                          = ARRAY(SELECT (g.key, k) FROM jsonb_each(has) g, jsonb_object_keys(g.value) k) THEN
        RETURN NULL;
    END IF;
    IF has <> '{}' THEN
        INSERT INTO metric_names AS m (experiment_id, grp, name, trials)
            SELECT NEW.experiment_id, x.grp, x.name, 1 FROM (
                SELECT g.key, k FROM jsonb_each(has) g, jsonb_object_keys(g.value) k
                EXCEPT SELECT g.key, k FROM jsonb_each(had) g, jsonb_object_keys(g.value) k) x(grp, name)
            ON CONFLICT (experiment_id, grp, md5(name)) DO UPDATE SET trials = m.trials + 1;
    END IF;
    IF had <> '{}' THEN -- an experiment that is being deleted has no rows any more
        UPDATE metric_names m SET trials = m.trials - 1 FROM (
                SELECT g.key, k FROM jsonb_each(had) g, jsonb_object_keys(g.value) k
                EXCEPT SELECT g.key, k FROM jsonb_each(has) g, jsonb_object_keys(g.value) k) x(grp, name)
            WHERE m.experiment_id = OLD.experiment_id AND m.grp = x.grp AND md5(m.name) = md5(x.name);
    END IF;
    RETURN NULL;
END $$;

-- As in 0048; who has ended is asked once for all.
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
    ids integer[] := '{}';
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
        ids := ids || grown.trial_id;
        IF grown.tail >= 16 THEN
            PERFORM close_chunk(grown.trial_id, grown.grp);
        END IF;
    END LOOP;
    UPDATE trials SET has_tail = true WHERE id = ANY (ids) AND NOT has_tail
        AND state IN ('COMPLETED', 'CANCELED', 'ERROR');
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
