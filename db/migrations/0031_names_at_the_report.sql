-- The different names of a trial's metrics are counted when a report arrives, so that the one with too many is refused.
-- Counted later, it was the trial's end that was refused, and with it the master.

ALTER TABLE metric_heads ADD COLUMN names integer; -- the group has at most so many different names; null: not counted

CREATE FUNCTION names_max() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 20000';

-- At most so many names has a report; a short one is not looked into: in jsonb a name and its value take 8 bytes.
CREATE FUNCTION names_in(grp text, m jsonb) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF pg_column_size(m) < 2000 THEN
        RETURN pg_column_size(m) / 8;
    END IF;
    RETURN (SELECT count(*) FROM jsonb_object_keys(m->metrics_key(grp)));
END $$;
-- The same of a report's text, where a name and its value take 5 bytes.
CREATE FUNCTION names_in_text(grp text, m text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE WHEN octet_length(m) < 2000 THEN octet_length(m) / 5 ELSE names_in(grp, m::jsonb) END;
END $$;

-- As before, but that it refuses nothing: the trial's end closes chunks too. What is counted here is exact.
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

-- At most so many different names does the group have with this report; refuses one that makes them too many. Where
-- the bound does not tell, the names that the summary does not know are counted, at last with the tail's in it.
CREATE FUNCTION names_with(p_trial integer, p_grp text, m jsonb) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    known integer;
    more integer := names_in(p_grp, m);
    s jsonb;
BEGIN
    SELECT names INTO known FROM metric_heads WHERE trial_id = p_trial AND grp = p_grp;
    IF NOT FOUND THEN
        known := 0;
    END IF;
    FOR try IN 1 .. 2 LOOP
        IF known + more <= names_max() THEN
            RETURN known + more;
        END IF;
        IF try = 2 OR known IS NULL THEN
            PERFORM close_chunk(p_trial, p_grp);
        END IF;
        SELECT coalesce(summary_metrics->summary_key(p_grp), '{}') INTO s FROM trials WHERE id = p_trial;
        SELECT count(*) INTO more FROM jsonb_object_keys(m->metrics_key(p_grp)) k WHERE NOT s ? k;
        IF try = 2 OR known IS NULL THEN
            SELECT count(*) INTO known FROM jsonb_object_keys(s);
        END IF;
    END LOOP;
    IF more > 0 AND known + more > names_max() THEN
        RAISE EXCEPTION 'the trial has reported more than % different metrics in group %; use fewer names',
            names_max(), p_grp USING ERRCODE = '22D01';
    END IF;
    RETURN known + more;
END $$;

-- As before, and counted.
CREATE OR REPLACE FUNCTION report_again(p_trial integer, p_run integer, p_group text, p_steps integer, m jsonb,
                                        p_batches text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    k text := metrics_key(p_group);
    had jsonb; -- taken out of its row once: every time copies it
    gain jsonb;
    clash text;
    row_time timestamptz;
    names_now integer;
BEGIN
    SELECT x.metrics->k, x.end_time INTO had, row_time FROM metrics x
        WHERE trial_id = p_trial AND grp = p_group AND steps = p_steps AND run_id = p_run;
    SELECT n.key INTO clash FROM jsonb_each(m->k) n WHERE had ? n.key AND had->n.key <> n.value LIMIT 1;
    IF clash IS NOT NULL THEN
        RETURN 'overlap ' || clash;
    END IF;
    SELECT coalesce(jsonb_object_agg(n.key, n.value), '{}') INTO gain FROM jsonb_each(m->k) n WHERE NOT had ? n.key;
    IF gain = '{}' THEN
        RETURN '';
    END IF;
    names_now := names_with(p_trial, p_group, jsonb_build_object(k, gain));
    UPDATE metric_heads SET names = names_now WHERE trial_id = p_trial AND grp = p_group;
    UPDATE metrics SET metrics = jsonb_build_object(k, had || gain), batch_metrics = coalesce(p_batches, batch_metrics)
        WHERE trial_id = p_trial AND grp = p_group AND steps = p_steps AND run_id = p_run;
    IF p_steps <= (SELECT closed_steps FROM metric_heads WHERE trial_id = p_trial AND grp = p_group) THEN
        PERFORM chunk_late(p_trial, p_group, p_steps, 0, gain, row_time);
    END IF;
    IF p_group = 'validation' THEN
        PERFORM note_validation(p_trial, p_run, p_steps);
    END IF;
    RETURN '';
END $$;

CREATE OR REPLACE FUNCTION report_odd(p_trial integer, p_run integer, p_group text, p_steps integer, m jsonb,
                                      p_time timestamptz, p_batches text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    groups_max CONSTANT integer := 100;
    h metric_heads;
    n integer;
BEGIN
    IF EXISTS (SELECT 1 FROM metrics WHERE trial_id = p_trial AND grp = p_group AND steps = p_steps AND run_id = p_run) THEN
        RETURN report_again(p_trial, p_run, p_group, p_steps, m, p_batches);
    END IF;
    PERFORM roll_back(p_trial, p_run, p_group, p_steps);
    n := names_with(p_trial, p_group, m);
    INSERT INTO metrics (trial_id, grp, run_id, steps, metrics, batch_metrics, end_time)
        VALUES (p_trial, p_group, p_run, p_steps, m, p_batches, p_time);
    SELECT * INTO h FROM metric_heads WHERE trial_id = p_trial AND grp = p_group;
    IF NOT FOUND THEN
        IF (SELECT count(*) FROM metric_heads WHERE trial_id = p_trial) >= groups_max THEN
            RAISE EXCEPTION 'the trial has % metric groups, the most a trial may have; use fewer names', groups_max
                USING ERRCODE = '22D01';
        END IF;
        INSERT INTO metric_heads (trial_id, grp, run_id, steps, tail, names)
            VALUES (p_trial, p_group, p_run, p_steps, 1, n);
    ELSIF p_steps > h.closed_steps THEN
        UPDATE metric_heads SET run_id = p_run, steps = greatest(steps, p_steps), tail = tail + 1, names = n
            WHERE trial_id = p_trial AND grp = p_group;
    ELSE
        UPDATE metric_heads SET run_id = p_run, names = n WHERE trial_id = p_trial AND grp = p_group;
        PERFORM chunk_late(p_trial, p_group, p_steps, 1, m->metrics_key(p_group), p_time);
    END IF;
    RETURN NULL;
END $$;

CREATE OR REPLACE FUNCTION report_metrics(p_trial integer, p_run integer, p_group text, p_steps integer, m jsonb,
                                          p_time timestamptz, p_batches text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    t record;
    said text;
    n integer;
BEGIN
    SELECT x.run_id, h.run_id head_run, h.steps, h.tail INTO t FROM trials x
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
    IF coalesce(t.tail, 0) >= 15 AND (SELECT tail >= 16 FROM metric_heads WHERE trial_id = p_trial AND grp = p_group) THEN
        PERFORM close_chunk(p_trial, p_group);
    END IF;
    IF p_group = 'validation' THEN
        PERFORM note_validation(p_trial, p_run, p_steps);
    END IF;
    RETURN '';
END $$;

-- As in 0017; one whose names might become too many does not simply follow: it is refused alone.
DROP FUNCTION reports_that_follow;
CREATE FUNCTION reports_that_follow(p_trial integer[], p_run integer[], p_group text[], p_steps integer[],
                                    p_names integer[])
    RETURNS boolean[] LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    RETURN (
    WITH t AS MATERIALIZED (SELECT id, run_id FROM trials WHERE id = ANY (p_trial) FOR SHARE)
    SELECT array_agg(ok ORDER BY i) FROM (
        SELECT i, bool_and(ok) OVER (PARTITION BY trial) ok FROM (
            SELECT r.i, r.trial, coalesce(t.run_id = r.run AND h.run_id = r.run
                AND r.steps > greatest(h.steps, lag(r.steps) OVER w) AND row_number() OVER w <= 16
                AND h.names + sum(r.names) OVER w <= names_max(), false) ok
            FROM unnest(p_trial, p_run, p_group, p_steps, p_names) WITH ORDINALITY r(trial, run, grp, steps, names, i)
            LEFT JOIN t ON t.id = r.trial LEFT JOIN metric_heads h ON h.trial_id = r.trial AND h.grp = r.grp
            WINDOW w AS (PARTITION BY r.trial, r.grp ORDER BY r.i)) x) y);
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

-- A finished trial is read from its chunks alone. Its end is more than they are: where they cannot be made, for their
-- size, its last reports stay out of them.
CREATE OR REPLACE FUNCTION close_trial_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    g text;
BEGIN
    FOR g IN SELECT grp FROM metric_heads WHERE trial_id = NEW.id AND tail > 0 LOOP
        BEGIN
            PERFORM close_chunk(NEW.id, g);
        EXCEPTION WHEN data_exception OR program_limit_exceeded OR internal_error THEN
            RAISE WARNING 'trial %: the last reports of group % are not in its charts: %', NEW.id, g, SQLERRM;
        END;
    END LOOP;
    RETURN NULL;
END $$;
