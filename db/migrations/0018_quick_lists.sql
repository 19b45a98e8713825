-- What lists and charts of many trials and experiments need to answer in a millisecond.

-- trial.v1.Trial without its state, of many trials at once: JSON text, as experiment_docs() makes it.

-- The checkpoint at the best validation is the best one; only where there is none must all be looked at.
CREATE FUNCTION trial_docs(p_ids integer[]) RETURNS TABLE (doc_id integer, doc text) LANGUAGE plpgsql STABLE ROWS 20
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_hashjoin = off
    SET enable_mergejoin = off AS $$
BEGIN
    RETURN QUERY SELECT t.id, json_build_object('id', t.id, 'experimentId', t.experiment_id,
        'startTime', api_time(t.start_time), 'endTime', api_time(t.end_time),
        'restarts', least(t.restarts, coalesce((e.config->>'max_restarts')::integer, t.restarts)),
        'hparams', t.hparams, 'totalBatchesProcessed', coalesce(h.steps, 0),
        'bestValidation', t.best_validation, 'latestValidation', t.latest_validation,
        'bestCheckpoint', CASE WHEN k.n = 0 THEN NULL ELSE coalesce(b.doc, best_checkpoint_doc(t.id)) END,
        'runnerState', t.runner_state, 'wallClockTime', w.seconds,
        'warmStartCheckpointUuid', coalesce(t.warm_start_checkpoint, ''), 'taskId', t.task_id,
        'totalCheckpointSize', k.bytes::text, 'checkpointCount', k.n,
        'summaryMetrics', CASE WHEN h.tail > 0 THEN trial_summary(t.id, t.summary_metrics) ELSE t.summary_metrics END,
        'taskIds', json_build_array(t.task_id), 'searcherMetricValue', t.searcher_metric_value)::text
    FROM unnest(p_ids) x(id) JOIN trials t ON t.id = x.id JOIN experiments e ON e.id = t.experiment_id
    CROSS JOIN LATERAL (SELECT greatest(max(steps), 0) steps, sum(tail) tail FROM metric_heads WHERE trial_id = t.id) h
    CROSS JOIN LATERAL (SELECT coalesce(sum(seconds_between(a.start_time, coalesce(a.end_time, now()))), 0) seconds
                        FROM allocations a WHERE a.trial_id = t.id) w
    CROSS JOIN LATERAL (SELECT count(*) n, coalesce(sum(c.bytes), 0) bytes FROM checkpoints c
                        WHERE c.trial_id = t.id AND c.state IN ('COMPLETED', 'PARTIALLY_DELETED')) k
    LEFT JOIN LATERAL (SELECT checkpoint_workload(c) doc FROM checkpoints c WHERE c.trial_id = t.id
                       AND c.state = 'COMPLETED' AND c.steps = (t.best_validation->>'totalBatches')::integer
                       ORDER BY c.uuid LIMIT 1) b ON true;
END $$;
ALTER FUNCTION experiment_docs ROWS 20;

-- How many experiments there are of each kind that the usual list filters by: its total, without counting.
CREATE TABLE experiment_counts (
    project_id integer NOT NULL,
    owner_id integer NOT NULL,
    state text COLLATE "C" NOT NULL,
    archived boolean NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (project_id, owner_id, state, archived)
) WITH (fillfactor = 50);
CREATE FUNCTION count_experiments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        UPDATE experiment_counts SET n = n - 1 WHERE project_id = OLD.project_id AND owner_id = OLD.owner_id
            AND state = OLD.state AND archived = OLD.archived;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO experiment_counts AS c VALUES (NEW.project_id, NEW.owner_id, NEW.state, NEW.archived, 1)
            ON CONFLICT (project_id, owner_id, state, archived) DO UPDATE SET n = c.n + 1;
    END IF;
    RETURN NULL;
END $$;
-- Nobody may write between the count and the triggers: a leader may serve meanwhile.
LOCK TABLE experiments IN SHARE ROW EXCLUSIVE MODE;
INSERT INTO experiment_counts SELECT project_id, owner_id, state, archived, count(*) FROM experiments GROUP BY 1, 2, 3, 4;
CREATE TRIGGER experiments_counted AFTER INSERT OR DELETE ON experiments
    FOR EACH ROW EXECUTE FUNCTION count_experiments();
CREATE TRIGGER experiments_moved AFTER UPDATE OF project_id, owner_id, state, archived ON experiments FOR EACH ROW
    WHEN (ROW(NEW.project_id, NEW.owner_id, NEW.state, NEW.archived)
          IS DISTINCT FROM ROW(OLD.project_id, OLD.owner_id, OLD.state, OLD.archived))
    EXECUTE FUNCTION count_experiments();

-- As before, but content with somewhat fewer items than are drawn: the next finer ones are four times as many.
CREATE OR REPLACE FUNCTION series_items(p_trial integer, p_grp text, p_from integer, p_to integer, p_names text[], p_buckets bigint)
    RETURNS TABLE (name integer, low text, high text) LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    h metric_heads;
    lvl integer := 0;
    covered integer := p_from - 1;
    n bigint;
    k text := metrics_key(p_grp);
BEGIN
    SELECT * INTO h FROM metric_heads x WHERE x.trial_id = p_trial AND x.grp = p_grp;
    IF NOT FOUND THEN
        RETURN;
    ELSIF h.closed > 0 THEN
        lvl := floor(ln(h.closed) / ln(4) + 1e-9)::integer + 1;
    END IF;
    WHILE lvl > 0 LOOP
        SELECT count(*) INTO n FROM (SELECT 1 FROM metric_chunks c WHERE c.trial_id = p_trial AND c.grp = p_grp
            AND c.level = lvl AND c.last_steps >= p_from AND c.after_steps < p_to LIMIT p_buckets) x;
        EXIT WHEN 3 * n >= 2 * p_buckets; -- the level below has four times as many
        lvl := lvl - 1;
    END LOOP;
    IF lvl > 0 THEN
        RETURN QUERY SELECT x.ord::integer, point_text(m.metrics->k->x.nm, m.steps, m.end_time), NULL::text
            FROM (SELECT * FROM metrics r WHERE r.trial_id = p_trial AND r.grp = p_grp AND NOT r.archived
                  AND r.steps BETWEEN p_from AND p_to ORDER BY r.steps LIMIT 1) m, unnest(p_names) WITH ORDINALITY x(nm, ord)
            WHERE jsonb_typeof(m.metrics->k->x.nm) = 'number';
    END IF;
    WHILE lvl > 0 LOOP
        RETURN QUERY SELECT x.ord::integer, (c.doc->x.nm->2)::text, (c.doc->x.nm->3)::text
            FROM metric_chunks c, unnest(p_names) WITH ORDINALITY x(nm, ord)
            WHERE c.trial_id = p_trial AND c.grp = p_grp AND c.level = lvl AND c.last_steps > covered
              AND c.after_steps < p_to AND jsonb_typeof(c.doc->x.nm->1) = 'number' ORDER BY c.last_steps;
        SELECT coalesce(max(c.last_steps), covered) INTO covered FROM metric_chunks c WHERE c.trial_id = p_trial
            AND c.grp = p_grp AND c.level = lvl AND c.last_steps > covered AND c.after_steps < p_to;
        lvl := lvl - 1;
    END LOOP;
    -- The tail; where there is none, the last report once more.
    RETURN QUERY SELECT x.ord::integer, point_text(m.metrics->k->x.nm, m.steps, m.end_time), NULL::text
        FROM metrics m, unnest(p_names) WITH ORDINALITY x(nm, ord)
        WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
          AND m.steps > least(covered, h.steps - 1) AND m.steps <= p_to
          AND jsonb_typeof(m.metrics->k->x.nm) = 'number' ORDER BY m.steps;
END $$;
