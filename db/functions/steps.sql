-- At which steps trials of an experiment reported what.

-- Whether the names of these reports of a trial are known at their steps, as keep_steps() asks first: here
-- without reading the reports again.
CREATE OR REPLACE FUNCTION steps_are_kept(p_trial integer, p_grp text, p_steps integer[], docs jsonb[]) RETURNS boolean
    LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    e integer := (SELECT experiment_id FROM trials WHERE id = p_trial);
BEGIN
    RETURN NOT EXISTS (SELECT FROM unnest(p_steps, docs) r(steps, doc) LEFT JOIN LATERAL (
                           SELECT names FROM metric_steps k WHERE k.experiment_id = e AND k.grp = p_grp AND k.steps = r.steps
                           AND NOT k.doubtful OFFSET 0) o ON true
                       WHERE o.names IS NULL OR r.doc - o.names <> '{}');
END $$;

-- The steps of the live rows of (p_after, p_upto]. Mostly the names of a report are known at its steps, by what
-- others reported there: that is looked at first, row by row, since a plan of the experiment's first reports would
-- read all its steps for ever.
CREATE OR REPLACE FUNCTION keep_steps(p_trial integer, p_grp text, p_after integer, p_upto integer) RETURNS void
    LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    e integer := (SELECT experiment_id FROM trials WHERE id = p_trial);
BEGIN
    IF NOT EXISTS (SELECT FROM metrics m LEFT JOIN LATERAL (
                       SELECT names FROM metric_steps k WHERE k.experiment_id = e AND k.grp = p_grp AND k.steps = m.steps
                       AND NOT k.doubtful OFFSET 0) o ON true
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

-- The same of reports of a trial's run that all have numbers of these names and nothing else, in order of their steps.
-- Mostly others reported just that at just these steps, which is seen at once: to look for each step takes ten times as
-- long.
CREATE OR REPLACE FUNCTION keep_named_steps(p_experiment integer, p_trial integer, p_grp text, p_steps integer[], p_names text[])
    RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    sorted CONSTANT text[] := ARRAY(SELECT n FROM unnest(p_names) n ORDER BY n);
BEGIN
    IF p_steps = ARRAY(SELECT k.steps FROM (
                SELECT steps, names, doubtful FROM metric_steps WHERE experiment_id = p_experiment AND grp = p_grp
                AND steps >= p_steps[1] AND steps <= p_steps[cardinality(p_steps)]
                ORDER BY steps LIMIT cardinality(p_steps) + 1) k -- others may have reported more often
            WHERE NOT k.doubtful AND (k.names COLLATE "C" = sorted OR k.names @> sorted)) THEN
        RETURN;
    END IF;
    INSERT INTO metric_steps AS k (experiment_id, grp, steps, names, trial_id, id)
        SELECT p_experiment, p_grp, s, sorted, p_trial, m.id
        FROM unnest(p_steps) s LEFT JOIN LATERAL (
                SELECT names FROM metric_steps o WHERE o.experiment_id = p_experiment AND o.grp = p_grp AND o.steps = s
                AND NOT o.doubtful OFFSET 0) o ON true,
             LATERAL (SELECT id FROM metrics WHERE trial_id = p_trial AND grp = p_grp AND steps = s AND NOT archived
                      ORDER BY id DESC LIMIT 1) m
        WHERE o.names IS NULL OR NOT o.names @> sorted
        ON CONFLICT (experiment_id, grp, steps) DO UPDATE SET id = excluded.id,
            names = ARRAY(SELECT unnest(k.names) UNION SELECT unnest(excluded.names) ORDER BY 1),
            trial_id = CASE WHEN excluded.names @> k.names THEN excluded.trial_id END,
            doubtful = k.doubtful AND NOT excluded.names @> k.names;
END $$;
