-- At which steps an experiment's trials have reported a metric, for the charts that ask for it: 5,000 trials have half a
-- million reports of a hundred different steps. Kept as chunks are closed; what is in the tails is looked up. And
-- which trials that have ended have a tail all the same, of late reports: the summary of each other one is whole.

ALTER TABLE trials ADD COLUMN has_tail boolean NOT NULL DEFAULT false; -- nothing is said of those that have not ended

CREATE TABLE metric_steps (
    experiment_id integer NOT NULL REFERENCES experiments ON DELETE CASCADE,
    grp text COLLATE "C" NOT NULL,
    steps integer NOT NULL,
    names text[] NOT NULL,  -- of the metrics that are numbers there
    trial_id integer,       -- has reported all of them there; null: several have
    id bigint NOT NULL,     -- the report that made the row or gave it names
    doubtful boolean NOT NULL DEFAULT false, -- trial_id has rolled back: who else?
    PRIMARY KEY (experiment_id, grp, steps)
);

CREATE FUNCTION number_names(m jsonb) RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN ARRAY(SELECT key FROM jsonb_each(m) WHERE jsonb_typeof(value) = 'number' ORDER BY key);
END $$;

-- The steps of the live rows of (p_after, p_upto].
CREATE FUNCTION keep_steps(p_trial integer, p_grp text, p_after integer, p_upto integer) RETURNS void
    LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    e integer := (SELECT experiment_id FROM trials WHERE id = p_trial);
BEGIN
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

INSERT INTO metric_steps (experiment_id, grp, steps, names, id)
    SELECT x.experiment_id, x.grp, x.steps, array_agg(DISTINCT n ORDER BY n), max(x.id)
    FROM (SELECT t.experiment_id, m.grp, m.steps, number_names(m.metrics->metrics_key(m.grp)) names, max(m.id) id
          FROM metrics m JOIN trials t ON t.id = m.trial_id WHERE NOT m.archived GROUP BY 1, 2, 3, 4) x, unnest(x.names) n
    GROUP BY 1, 2, 3;

-- As before, and the steps are kept.
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
    UPDATE trials SET summary_metrics = summary_merge_chunk(summary_metrics, summary_key(p_grp), d)
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

CREATE OR REPLACE FUNCTION chunk_late(p_trial integer, p_grp text, p_steps integer, p_rows integer, m jsonb, p_time timestamptz)
    RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    d jsonb;
BEGIN
    SELECT coalesce(jsonb_object_agg(key, CASE WHEN jsonb_typeof(value) = 'number'
        THEN jsonb_build_array(1, metric_bounded(value::float8),
             jsonb_build_array(value, p_steps, extract(epoch FROM p_time)::float8),
             jsonb_build_array(value, p_steps, extract(epoch FROM p_time)::float8), value)
        ELSE jsonb_build_array(1, metric_kind(value), value) END), '{}') INTO d FROM jsonb_each(m);
    PERFORM keep_steps(p_trial, p_grp, p_steps - 1, p_steps);
    UPDATE metric_chunks c SET n = c.n + p_rows, doc = chunk_of_chunks(ARRAY[c.doc, d])
        FROM (SELECT level, min(seq) seq FROM metric_chunks
              WHERE trial_id = p_trial AND grp = p_grp AND last_steps >= p_steps GROUP BY level) x
        WHERE c.trial_id = p_trial AND c.grp = p_grp AND c.level = x.level AND c.seq = x.seq;
    UPDATE trials SET summary_metrics = summary_merge_chunk(summary_metrics, summary_key(p_grp), d) WHERE id = p_trial;
END $$;

-- As before; nobody may have reported there any more.
CREATE OR REPLACE FUNCTION roll_back(p_trial integer, p_run integer, p_grp text, p_steps integer) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    UPDATE metrics SET archived = true WHERE trial_id = p_trial AND NOT archived AND run_id < p_run
        AND steps >= p_steps AND (steps > p_steps OR grp = p_grp);
    IF FOUND OR EXISTS (SELECT 1 FROM metric_heads WHERE trial_id = p_trial AND run_id < p_run
                        AND kept_steps > p_steps - (grp = p_grp)::integer) THEN
        UPDATE metric_steps k SET doubtful = true FROM trials t
            WHERE t.id = p_trial AND k.experiment_id = t.experiment_id AND k.steps >= p_steps
            AND (k.steps > p_steps OR k.grp = p_grp) AND (k.trial_id = p_trial OR k.trial_id IS NULL) AND NOT k.doubtful;
        PERFORM reopen_chunks(p_trial, p_grp, p_steps);
        PERFORM refresh_validations(p_trial);
    END IF;
END $$;

-- As before; late reports are told of.
CREATE OR REPLACE FUNCTION report_metrics(p_trial integer, p_run integer, p_group text, p_steps integer, m jsonb,
                                          p_time timestamptz, p_batches text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    t record;
    said text;
    n integer;
BEGIN
    SELECT x.run_id, x.state, h.run_id head_run, h.steps, h.tail INTO t FROM trials x
        LEFT JOIN metric_heads h ON h.trial_id = x.id AND h.grp = p_group WHERE x.id = p_trial FOR SHARE OF x;
    IF NOT FOUND THEN
        RETURN 'unknown';
    ELSIF t.run_id <> p_run THEN
        RETURN 'stale';
    END IF;
    IF t.head_run = p_run AND p_steps > t.steps THEN
        n := names_with(p_trial, p_group, m);
        INSERT INTO metrics (trial_id, grp, run_id, steps, metrics, batch_metrics, end_time)
            VALUES (p_trial, p_group, p_run, p_steps, m, p_batches, p_time);
        UPDATE metric_heads SET steps = p_steps, tail = tail + 1, names = n
            WHERE trial_id = p_trial AND grp = p_group;
    ELSE
        said := report_odd(p_trial, p_run, p_group, p_steps, m, p_time, p_batches);
        IF said IS NOT NULL THEN
            RETURN said;
        END IF;
    END IF;
    IF t.state IN ('COMPLETED', 'CANCELED', 'ERROR') THEN
        UPDATE trials SET has_tail = true WHERE id = p_trial AND NOT has_tail;
    END IF;
    IF coalesce(t.tail, 0) >= 15 AND (SELECT tail >= 16 FROM metric_heads WHERE trial_id = p_trial AND grp = p_group) THEN
        PERFORM close_chunk(p_trial, p_group);
    END IF;
    IF p_group = 'validation' THEN
        PERFORM note_validation(p_trial, p_run, p_steps);
    END IF;
    RETURN '';
END $$;

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
    FOR grown IN UPDATE metric_heads h SET steps = x.steps, tail = tail + x.n, names = names + x.names
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

UPDATE trials t SET has_tail = true WHERE t.state IN ('COMPLETED', 'CANCELED', 'ERROR')
    AND EXISTS (SELECT 1 FROM metric_heads h WHERE h.trial_id = t.id AND h.tail > 0);
