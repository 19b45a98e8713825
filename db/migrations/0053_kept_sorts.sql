-- What an experiment's trials are sorted by, in their rows: the lists by batches and by the latest validation looked at
-- 10,000 heads, and into 5,000 documents, for a page of twenty. Written along with what these writes change anyway.

ALTER TABLE trials
    ADD COLUMN closed_batches integer NOT NULL DEFAULT 0, -- the highest step of its chunks; of a tail the heads tell
    ADD COLUMN latest_value double precision;             -- the searcher's metric of latest_validation, if a number

-- As before, and kept.
CREATE OR REPLACE FUNCTION close_chunk(p_trial integer, p_grp text) RETURNS void LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    h metric_heads;
    c integer;
    up integer := 1;
    d jsonb;
    s jsonb;
BEGIN
    SELECT * INTO h FROM metric_heads WHERE trial_id = p_trial AND grp = p_grp;
    IF h.tail = 0 THEN
        RETURN;
    END IF;
    d := chunk_of_rows(p_trial, p_grp, h.closed_steps, h.steps);
    PERFORM keep_steps(p_trial, p_grp, h.closed_steps, h.steps);
    INSERT INTO metric_chunks VALUES (p_trial, p_grp, 1, h.closed, h.closed_steps, h.steps, h.tail, d);
    UPDATE trials SET summary_metrics = summary_merge_chunk(summary_metrics, summary_key(p_grp), d),
        closed_batches = greatest(closed_batches, h.steps)
        WHERE id = p_trial RETURNING summary_metrics->summary_key(p_grp) INTO s;
    UPDATE metric_heads SET closed = h.closed + 1, closed_steps = h.steps, tail = 0,
        names = (SELECT count(*) FROM jsonb_object_keys(s)) WHERE trial_id = p_trial AND grp = p_grp;
    c := h.closed + 1;
    WHILE c % 4 = 0 LOOP
        c := c / 4;
        INSERT INTO metric_chunks
            SELECT p_trial, p_grp, up + 1, c - 1, min(after_steps), max(last_steps), sum(n),
                   chunk_of_chunks(array_agg(doc ORDER BY seq))
            FROM metric_chunks WHERE trial_id = p_trial AND grp = p_grp AND level = up
             AND seq BETWEEN 4 * (c - 1) AND 4 * c - 1;
        up := up + 1;
    END LOOP;
END $$;
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
CREATE OR REPLACE FUNCTION note_validation(p_trial integer, p_run integer, p_steps integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    x record;
BEGIN
    SELECT metrics_workload(m, false) doc, m.metrics->'validation_metrics' ? e.searcher_metric has,
           number_of(m.metrics->'validation_metrics'->e.searcher_metric) latest,
           searcher_value(m.metrics, e.searcher_metric) v, t.searcher_metric_value best, e.smaller_is_better, e.id exp
        INTO x FROM trials t JOIN experiments e ON e.id = t.experiment_id JOIN metrics m ON m.trial_id = t.id
        WHERE t.id = p_trial AND m.trial_id = p_trial AND m.grp = 'validation' AND m.steps = p_steps AND m.run_id = p_run;
    IF x.has THEN
        UPDATE trials SET latest_validation = x.doc, latest_value = x.latest WHERE id = p_trial;
    END IF;
    IF x.v IS NOT NULL AND (x.best IS NULL OR CASE WHEN x.smaller_is_better THEN x.v < x.best ELSE x.v > x.best END) THEN
        UPDATE trials SET best_validation = x.doc, searcher_metric_value = x.v WHERE id = p_trial;
        UPDATE experiments SET best_trial_id = p_trial, best_metric = x.v WHERE id = x.exp AND (best_metric IS NULL
            OR CASE WHEN smaller_is_better THEN x.v < best_metric ELSE x.v > best_metric END);
    END IF;
END $$;
CREATE OR REPLACE FUNCTION refresh_validations(p_trial integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    e record;
BEGIN
    SELECT x.id, x.searcher_metric, x.smaller_is_better INTO e
        FROM experiments x JOIN trials t ON t.experiment_id = x.id WHERE t.id = p_trial;
    UPDATE trials t SET
        (latest_validation, latest_value) = (SELECT metrics_workload(m, false),
            number_of(m.metrics->'validation_metrics'->e.searcher_metric) FROM metrics m WHERE m.trial_id = p_trial
            AND m.grp = 'validation' AND NOT m.archived AND m.metrics->'validation_metrics' ? e.searcher_metric
            ORDER BY m.steps DESC, m.run_id DESC LIMIT 1),
        (best_validation, searcher_metric_value) = (SELECT metrics_workload(m, false), x.v FROM metrics m,
            LATERAL (SELECT searcher_value(m.metrics, e.searcher_metric) v) x
            WHERE m.trial_id = p_trial AND m.grp = 'validation' AND NOT m.archived AND x.v IS NOT NULL
            ORDER BY CASE WHEN e.smaller_is_better THEN x.v ELSE -x.v END, m.steps LIMIT 1)
        WHERE t.id = p_trial;
    PERFORM refresh_best_trial(e.id);
END $$;
-- As before; what stays out of the chunks is looked for in the tail.
CREATE OR REPLACE FUNCTION close_trial_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    g text;
BEGIN
    FOR g IN SELECT grp FROM metric_heads WHERE trial_id = NEW.id AND tail > 0 LOOP
        BEGIN
            PERFORM close_chunk(NEW.id, g);
        EXCEPTION WHEN data_exception OR program_limit_exceeded OR internal_error THEN
            RAISE WARNING 'trial %: the last reports of group % are not in its charts: %', NEW.id, g, SQLERRM;
            UPDATE trials SET has_tail = true WHERE id = NEW.id;
        END;
    END LOOP;
    RETURN NULL;
END $$;

-- Nobody may report between the count and the functions: a leader may serve meanwhile.
LOCK TABLE trials IN SHARE ROW EXCLUSIVE MODE;
UPDATE trials t SET closed_batches = greatest(h.steps, 0),
    latest_value = number_of(t.latest_validation->'metrics'->'avgMetrics'->e.searcher_metric)
    FROM trials x LEFT JOIN (SELECT trial_id, max(closed_steps) steps FROM metric_heads GROUP BY trial_id) h
         ON h.trial_id = x.id, experiments e
    WHERE x.id = t.id AND e.id = t.experiment_id AND (h.steps > 0 OR t.latest_validation IS NOT NULL);
UPDATE trials t SET has_tail = true WHERE NOT has_tail AND state IN ('COMPLETED', 'CANCELED', 'ERROR')
    AND EXISTS (SELECT 1 FROM metric_heads h WHERE h.trial_id = t.id AND h.tail > 0);
