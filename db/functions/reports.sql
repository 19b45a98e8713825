-- Reports of trials, each fenced: only the trial's current run may write.

-- A report of steps that were reported before: what is new of it is added to its row, and counted.
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
    -- What is looked up of trials that have ended may lack it.
    UPDATE trials SET has_tail = true WHERE id = p_trial AND NOT has_tail AND has_ended(state);
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

-- A report that does not simply follow the one before it: the first of a run or a group, a repeat, steps out of order.
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

-- One report. m: {avg_metrics | validation_metrics}; p_batches: JSON [{..}] or null. Returns '' when it is kept
-- (or was kept before), else 'unknown', 'stale', or 'overlap <metric>'.
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
    IF has_ended(t.state) THEN
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

-- Which of these reports simply follow what their trials reported before: those of a trial all do, or none is said to,
-- and no more of a trial's than fill a chunk; nor those of a trial that has ended. The fence is held for all.
CREATE OR REPLACE FUNCTION reports_that_follow(p_trial integer[], p_run integer[], p_group text[], p_steps integer[],
                                    p_names integer[])
    RETURNS boolean[] LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    SET enable_hashjoin = off SET enable_mergejoin = off AS $$
BEGIN
    RETURN (
    WITH t AS MATERIALIZED (SELECT id, run_id FROM trials WHERE id = ANY (p_trial)
                            AND NOT has_ended(state) FOR SHARE)
    SELECT array_agg(ok ORDER BY i) FROM (
        SELECT i, bool_and(ok) OVER (PARTITION BY trial) ok FROM (
            SELECT r.i, r.trial, coalesce(t.run_id = r.run AND h.run_id = r.run
                AND r.steps > greatest(h.steps, lag(r.steps) OVER w) AND row_number() OVER w <= 16
                AND h.names + sum(r.names) OVER w <= names_max(), false) ok
            FROM unnest(p_trial, p_run, p_group, p_steps, p_names) WITH ORDINALITY r(trial, run, grp, steps, names, i)
            LEFT JOIN t ON t.id = r.trial LEFT JOIN metric_heads h ON h.trial_id = r.trial AND h.grp = r.grp
            WINDOW w AS (PARTITION BY r.trial, r.grp ORDER BY r.i)) x) y);
END $$;

-- report_metrics() of each report in turn: its answers, in order. Those that simply follow are written together,
-- since beginning a statement costs more than a row.
CREATE OR REPLACE FUNCTION report_metrics_many(p_trial integer[], p_run integer[], p_group text[], p_steps integer[],
                                               p_metrics text[], p_time timestamptz[], p_batches text[])
    RETURNS SETOF text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off
    SET enable_hashjoin = off SET enable_mergejoin = off AS $$
DECLARE
    said text[] := array_fill(''::text, ARRAY[cardinality(p_trial)]);
    n integer[] := ARRAY(SELECT CASE WHEN octet_length(m) < 2000 THEN octet_length(m) / 5 ELSE names_in_text(grp, m) END
                         FROM unnest(p_group, p_metrics) x(grp, m));
    follows boolean[] := reports_that_follow(p_trial, p_run, p_group, p_steps, n);
    grown record;
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
        IF grown.tail >= 16 THEN
            PERFORM close_chunk(grown.trial_id, grown.grp);
        END IF;
    END LOOP;
    IF NOT (false = ANY (follows) OR 'validation' = ANY (p_group)) THEN
        RETURN QUERY SELECT unnest(said);
        RETURN;
    END IF;
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

-- What a trial's next reports of a group are written with: chunks of theirs that are made already.
-- p_ends: how many of the reports there are up to the end of each. A tail that was there becomes part of the first.
CREATE OR REPLACE FUNCTION add_chunks(h metric_heads, p_experiment integer, p_names text[], p_steps integer[], p_ends integer[],
                                      p_docs text[], p_lines text[], p_values text[], p_whole jsonb)
    RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    n CONSTANT integer := cardinality(p_steps);
    added CONSTANT integer := cardinality(p_ends);
    last CONSTANT integer := p_steps[n];
    tail record;
    first record;
    s jsonb;
    whole jsonb := p_whole;
    below integer := h.closed; -- chunks of a level, before and after
    above integer := h.closed + added;
    up smallint := 2;
BEGIN
    SELECT p_docs[1]::jsonb doc, split_part(p_lines[1], ';', 1) steps, split_part(p_lines[1], ';', 2) times, p_values[1]::jsonb vals INTO first;
    IF h.tail > 0 THEN
        tail := tail_made(h);
        first.doc := chunk_of_chunks(ARRAY[tail.doc, first.doc]);
        first.steps := tail.report_steps || ',' || first.steps;
        first.times := tail.report_times || ',' || first.times;
        first.vals := (SELECT jsonb_object_agg(key, v || ',' || (first.vals->>key)) FROM jsonb_each_text(tail.report_values) t(key, v)
                       HAVING count(first.vals->>key) = cardinality(p_names) AND count(*) = cardinality(p_names));
        whole := chunk_of_chunks(ARRAY[tail.doc, whole]);
    END IF;
    INSERT INTO metric_chunks (trial_id, grp, level, seq, after_steps, last_steps, n, doc, report_steps, report_times, report_values)
        SELECT h.trial_id, h.grp, 1, h.closed + i - 1, CASE i WHEN 1 THEN h.closed_steps ELSE p_steps[p_ends[i - 1]] END, p_steps[ends],
               ends - CASE i WHEN 1 THEN -h.tail ELSE p_ends[i - 1] END, CASE i WHEN 1 THEN first.doc ELSE doc::jsonb END,
               CASE i WHEN 1 THEN first.steps ELSE split_part(lines, ';', 1) END,
               CASE i WHEN 1 THEN first.times ELSE split_part(lines, ';', 2) END,
               CASE i WHEN 1 THEN first.vals ELSE vals::jsonb END
        FROM unnest(p_ends, p_docs, p_lines, p_values) WITH ORDINALITY x(ends, doc, lines, vals, i);
    PERFORM keep_named_steps(p_experiment, h.trial_id, h.grp, p_steps, p_names);
    UPDATE trials SET summary_metrics = summary_merge_chunk(summary_metrics, summary_key(h.grp), whole),
        closed_batches = greatest(closed_batches, last)
        WHERE id = h.trial_id RETURNING summary_metrics->summary_key(h.grp) INTO s;
    UPDATE metric_heads SET steps = last, closed = above, closed_steps = last, tail = 0,
        names = (SELECT count(*) FROM jsonb_object_keys(s)) WHERE trial_id = h.trial_id AND grp = h.grp;
    IF added = 4 AND h.closed % 4 = 0 THEN -- the four that are one above are at hand
        INSERT INTO metric_chunks (trial_id, grp, level, seq, after_steps, last_steps, n, doc)
            VALUES (h.trial_id, h.grp, 2, h.closed / 4, h.closed_steps, last, h.tail + n, whole);
        up := 3;
        below := below / 4;
        above := above / 4;
    END IF;
    LOOP
        below := below / 4;
        above := above / 4;
        EXIT WHEN below = above;
        INSERT INTO metric_chunks
            SELECT h.trial_id, h.grp, up, seq / 4, min(after_steps), max(last_steps), sum(c.n), chunk_of_chunks(array_agg(doc ORDER BY seq))
            FROM metric_chunks c WHERE trial_id = h.trial_id AND grp = h.grp AND level = up - 1
             AND seq >= 4 * below AND seq < 4 * above GROUP BY seq / 4;
        up := up + 1;
    END LOOP;
END $$;

-- report_metrics() of reports of a trial and a group in turn: its answers, in order. Where they simply follow what it reported
-- before, they are written together, and with chunks that the caller has made of them, if any (proto/charts/metric_chunks.h).
CREATE OR REPLACE FUNCTION report_metrics_batch(p_trial integer, p_run integer, p_group text, p_steps integer[], p_metrics text[],
        p_time timestamptz[], p_batches text[], p_names text[], p_ends integer[], p_docs text[], p_lines text[], p_values text[], p_whole text)
    RETURNS SETOF text LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
DECLARE
    n CONSTANT integer := cardinality(p_steps);
    more integer := cardinality(p_names);
    t record;
    h metric_heads;
BEGIN
    SELECT run_id, state, experiment_id INTO t FROM trials WHERE id = p_trial FOR SHARE;
    SELECT * INTO h FROM metric_heads WHERE trial_id = p_trial AND grp = p_group;
    IF more IS NULL THEN
        more := (SELECT sum(names_in_text(p_group, m)) FROM unnest(p_metrics) m);
    END IF;
    IF p_group = 'validation' OR (t.run_id = p_run AND h.run_id = p_run AND NOT has_ended(t.state) AND p_steps[1] > h.steps
            AND h.names + more <= names_max()
            AND (p_ends IS NOT NULL -- whoever makes chunks has looked
                 OR (SELECT bool_and(x.s > x.prior) FROM (SELECT s, lag(s, 1, -1) OVER () prior FROM unnest(p_steps) s) x))) IS NOT TRUE THEN
        FOR i IN 1 .. n LOOP
            RETURN NEXT report_metrics(p_trial, p_run, p_group, p_steps[i], p_metrics[i]::jsonb, p_time[i], p_batches[i]);
        END LOOP;
        RETURN;
    END IF;
    INSERT INTO metrics (trial_id, grp, run_id, steps, metrics, batch_metrics, end_time)
        SELECT p_trial, p_group, p_run, steps, m::jsonb, batches, at
        FROM (SELECT unnest(p_steps) steps, unnest(p_metrics) m, unnest(p_batches) batches, unnest(p_time) at OFFSET 0) x;
    IF p_ends IS NOT NULL THEN
        PERFORM add_chunks(h, t.experiment_id, p_names, p_steps, p_ends, p_docs, p_lines, p_values, p_whole::jsonb);
    ELSE
        UPDATE metric_heads SET steps = p_steps[n], tail = h.tail + n, names = h.names + more
            WHERE trial_id = p_trial AND grp = p_group;
        IF h.tail + n >= 16 THEN
            PERFORM close_chunk(p_trial, p_group);
        END IF;
    END IF;
    RETURN QUERY SELECT '' FROM generate_series(1, n);
END $$;
