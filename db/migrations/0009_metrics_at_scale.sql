-- Metric reports as appended rows: partitions by range of trial, one index, nothing else written but a
-- narrow row per trial and group (metric_heads) that says how far its run came, so that a report needs no
-- look-up among the rows. Every CHUNK_ROWS (16) rows become a level-1 chunk with count, sum, minimum,
-- maximum and last value of each metric; every 4 chunks of a level one of the next. Charts and summaries
-- read chunks.

CREATE SEQUENCE metrics_id;
ALTER TABLE metrics RENAME TO metrics_6;
ALTER INDEX metrics_pkey RENAME TO metrics_6_pkey;
DROP INDEX metrics_live;
CREATE TABLE metrics (
    trial_id integer NOT NULL,
    grp text COLLATE "C" NOT NULL, -- training, validation, or the user's own
    steps integer NOT NULL,
    run_id integer NOT NULL,
    archived boolean NOT NULL DEFAULT false, -- rolled back by a restart from an earlier checkpoint
    id bigint NOT NULL DEFAULT nextval('metrics_id'),
    end_time timestamptz NOT NULL,
    metrics jsonb NOT NULL, -- {avg_metrics | validation_metrics: {..}}
    batch_metrics text,     -- JSON: [{..}]; checked by the master, kept as it came
    PRIMARY KEY (trial_id, grp, steps, run_id)
) PARTITION BY RANGE (trial_id);

CREATE TABLE metric_chunks (
    trial_id integer NOT NULL,
    grp text COLLATE "C" NOT NULL,
    level smallint NOT NULL,
    seq integer NOT NULL,         -- covers seq * 4 .. seq * 4 + 3 of the level below
    after_steps integer NOT NULL, -- holds the live rows of (after_steps, last_steps]
    last_steps integer NOT NULL,
    n bigint NOT NULL,
    doc jsonb NOT NULL, -- metric -> [count, sum, [min, steps, time], [max, steps, time], last]
                        -- or, of what is not numbers, [count, type, last]
    PRIMARY KEY (trial_id, grp, level, seq)
) PARTITION BY RANGE (trial_id);

DO $$
BEGIN
    ALTER TABLE metrics ALTER batch_metrics SET COMPRESSION lz4;
EXCEPTION WHEN OTHERS THEN NULL; -- a server built without lz4 uses its own
END $$;

CREATE TABLE metric_heads (
    trial_id integer NOT NULL REFERENCES trials ON DELETE CASCADE,
    grp text COLLATE "C" NOT NULL,
    run_id integer NOT NULL,          -- of the newest report
    steps integer NOT NULL,           -- the highest of the live rows
    closed integer NOT NULL DEFAULT 0, -- level-1 chunks
    closed_steps integer NOT NULL DEFAULT -1, -- they hold the live rows up to here
    tail integer NOT NULL DEFAULT 0,  -- live rows beyond
    PRIMARY KEY (trial_id, grp)
) WITH (fillfactor = 60);

ALTER TABLE trials ADD COLUMN latest_validation jsonb, ADD COLUMN best_validation jsonb; -- MetricsWorkload

-- Partitions for p_trial and the trials to come. ATTACH holds up neither readers nor reports.
CREATE FUNCTION metric_partitions(p_trial integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    size CONSTANT bigint := 10000;
    base text;
    part text;
    p bigint;
BEGIN
    FOR p IN p_trial / size .. p_trial / size + 1 LOOP
        FOREACH base IN ARRAY ARRAY['metrics', 'metric_chunks'] LOOP
            part := base || '_' || p;
            CONTINUE WHEN to_regclass(part) IS NOT NULL;
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING STORAGE INCLUDING COMPRESSION)',
                           part, base);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', base, part,
                           p * size, least((p + 1) * size, 2147483647));
        END LOOP;
    END LOOP;
END $$;
CREATE FUNCTION metric_partitions_ahead() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM metric_partitions(NEW.id);
    RETURN NULL;
END $$;
-- Core gives ids out one after the other.
CREATE TRIGGER trials_metric_partitions AFTER INSERT ON trials
    FOR EACH ROW WHEN (NEW.id % 100 = 0) EXECUTE FUNCTION metric_partitions_ahead();
CREATE FUNCTION drop_trial_metrics() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM metrics WHERE trial_id = OLD.id;
    DELETE FROM metric_chunks WHERE trial_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER trials_drop_metrics AFTER DELETE ON trials FOR EACH ROW EXECUTE FUNCTION drop_trial_metrics();

-- What a value is in a summary: JSON's words, but nan for a double that JSON cannot hold.
CREATE FUNCTION metric_kind(v jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN jsonb_typeof(v) = 'string' AND v #>> '{}' IN ('NaN', 'Infinity', '-Infinity') THEN 'nan'
                ELSE jsonb_typeof(v) END
$$;
-- Sums stay finite: better a wrong sum than a refused report.
CREATE FUNCTION metric_bounded(x double precision) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN x < -1e296 THEN -1e296 WHEN x > 1e296 THEN 1e296 ELSE x END
$$;
CREATE FUNCTION metric_type(a text, b text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN a = b THEN a WHEN a = 'nan' AND b = 'number' OR a = 'number' AND b = 'nan' THEN 'number'
                ELSE 'string' END
$$;

-- The chunk of the live rows of (p_after, p_upto]. (In plpgsql, which keeps plans; a function in SQL is
-- planned anew in every transaction, and so is one that the planner thinks better of knowing the partition.)
CREATE FUNCTION chunk_of_rows(p_trial integer, p_grp text, p_after integer, p_upto integer) RETURNS jsonb
    LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (
    SELECT coalesce(jsonb_object_agg(x.key, CASE
        WHEN n > 0 AND n + nans = k THEN jsonb_build_array(n, total, to_jsonb(low), to_jsonb(high), last[1])
        ELSE jsonb_build_array(k, CASE WHEN n + nans = k THEN 'nan' WHEN kind = kind2 THEN kind ELSE 'string' END,
                               last[1]) END), '{}')
    FROM (SELECT v.key, count(*) k, count(num) n, count(*) FILTER (WHERE t.kind = 'nan') nans,
                 min(t.kind) kind, max(t.kind) kind2, sum(metric_bounded(num)) total,
                 min(ARRAY[num, m.steps, at]) FILTER (WHERE num IS NOT NULL) low,
                 max(ARRAY[num, m.steps, at]) FILTER (WHERE num IS NOT NULL) high,
                 array_agg(v.value ORDER BY m.steps DESC, m.id DESC) last
          FROM metrics m, jsonb_each(m.metrics->metrics_key(m.grp)) v,
               LATERAL (SELECT metric_kind(v.value) kind, extract(epoch FROM m.end_time)::float8 at,
                               CASE WHEN jsonb_typeof(v.value) = 'number' THEN v.value::float8 END num) t
          WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
            AND m.steps > p_after AND m.steps <= p_upto
          GROUP BY v.key) x);
END $$;

-- Chunks in order as one.
CREATE FUNCTION chunk_of_chunks(docs jsonb[]) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (
    SELECT coalesce(jsonb_object_agg(key, CASE
        WHEN n > 0 AND odd = 0 THEN jsonb_build_array(n, metric_bounded(total), to_jsonb(low), to_jsonb(high), last[1])
        ELSE jsonb_build_array(k, CASE WHEN odd = 0 THEN 'nan' WHEN n = 0 AND kind = kind2 THEN kind ELSE 'string' END,
                               last[1]) END), '{}')
    FROM (SELECT v.key, sum((v.value->>0)::bigint) k,
                 coalesce(sum((v.value->>0)::bigint) FILTER (WHERE is_num), 0) n,
                 count(*) FILTER (WHERE NOT is_num AND v.value->>1 <> 'nan') odd,
                 min(v.value->>1) FILTER (WHERE NOT is_num) kind,
                 max(v.value->>1) FILTER (WHERE NOT is_num) kind2,
                 sum(CASE WHEN is_num THEN metric_bounded((v.value->>1)::float8) END) total,
                 min(CASE WHEN is_num THEN ARRAY[v.value#>>'{2,0}', v.value#>>'{2,1}', v.value#>>'{2,2}']::float8[] END) low,
                 max(CASE WHEN is_num THEN ARRAY[v.value#>>'{3,0}', v.value#>>'{3,1}', v.value#>>'{3,2}']::float8[] END) high,
                 array_agg(v.value->-1 ORDER BY d.at DESC) last
          FROM unnest(docs) WITH ORDINALITY d(doc, at), jsonb_each(d.doc) v,
               LATERAL (SELECT jsonb_typeof(v.value->1) = 'number' is_num) t
          GROUP BY v.key) x);
END $$;

-- One metric's summary after one more chunk of it.
CREATE FUNCTION summary_after(old jsonb, c jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    numbers boolean := jsonb_typeof(c->1) = 'number';
    n bigint := (c->>0)::bigint;
    low double precision;
    high double precision;
    total double precision;
BEGIN
    IF numbers AND coalesce(old->>'type', 'number') = 'number' THEN
        low := (c#>>'{2,0}')::float8;
        high := (c#>>'{3,0}')::float8;
        total := metric_bounded((c->>1)::float8);
        IF old IS NOT NULL THEN
            n := n + (old->>'count')::bigint;
            low := least(low, (old->>'min')::float8);
            high := greatest(high, (old->>'max')::float8);
            total := total + metric_bounded((old->>'sum')::float8);
        END IF;
        RETURN jsonb_build_object('type', 'number', 'count', n, 'min', low, 'max', high, 'sum', total,
                                  'mean', total / n, 'last', c->-1);
    ELSIF NOT numbers AND c->>1 = 'nan' AND old->>'type' = 'number' THEN
        RETURN old || jsonb_build_object('last', c->-1);
    END IF;
    RETURN jsonb_build_object('type', CASE WHEN numbers THEN 'string' WHEN c->>1 = 'nan' THEN 'string'
                                           WHEN old IS NULL OR old->>'type' = c->>1 THEN c->>1 ELSE 'string' END,
                              'count', n + coalesce((old->>'count')::bigint, 0), 'last', c->-1);
END $$;

-- Summaries (by group key, then metric) after one more chunk of group key g.
CREATE FUNCTION summary_merge_chunk(old jsonb, g text, doc jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (
    SELECT old || jsonb_build_object(g, coalesce(old->g, '{}') ||
        (SELECT coalesce(jsonb_object_agg(key, summary_after(old->g->key, value)), '{}') FROM jsonb_each(doc))));
END $$;

-- The tail becomes a level-1 chunk, and full quartets become chunks of the levels above.
CREATE FUNCTION close_chunk(p_trial integer, p_grp text) RETURNS void LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    names_max CONSTANT integer := 20000;
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
    UPDATE metric_heads SET closed = h.closed + 1, closed_steps = h.steps, tail = 0
        WHERE trial_id = p_trial AND grp = p_grp;
    UPDATE trials SET summary_metrics = summary_merge_chunk(summary_metrics, summary_key(p_grp), d)
        WHERE id = p_trial RETURNING summary_metrics->summary_key(p_grp) INTO s;
    IF (SELECT count(*) FROM jsonb_object_keys(s)) > names_max THEN
        RAISE EXCEPTION 'the trial has reported more than % different metrics in group %; use fewer names',
            names_max, p_grp USING ERRCODE = '22D01';
    END IF;
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

-- A row, or metrics of a row, that came after its chunk was closed: each level's chunk of these steps takes them in.
CREATE FUNCTION chunk_late(p_trial integer, p_grp text, p_steps integer, p_rows integer, m jsonb, p_time timestamptz)
    RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    d jsonb;
BEGIN
    SELECT coalesce(jsonb_object_agg(key, CASE WHEN jsonb_typeof(value) = 'number'
        THEN jsonb_build_array(1, metric_bounded(value::float8),
             jsonb_build_array(value, p_steps, extract(epoch FROM p_time)::float8),
             jsonb_build_array(value, p_steps, extract(epoch FROM p_time)::float8), value)
        ELSE jsonb_build_array(1, metric_kind(value), value) END), '{}') INTO d FROM jsonb_each(m);
    UPDATE metric_chunks c SET n = c.n + p_rows, doc = chunk_of_chunks(ARRAY[c.doc, d])
        FROM (SELECT level, min(seq) seq FROM metric_chunks
              WHERE trial_id = p_trial AND grp = p_grp AND last_steps >= p_steps GROUP BY level) x
        WHERE c.trial_id = p_trial AND c.grp = p_grp AND c.level = x.level AND c.seq = x.seq;
    UPDATE trials SET summary_metrics = summary_merge_chunk(summary_metrics, summary_key(p_grp), d) WHERE id = p_trial;
END $$;

-- The fewest chunks that hold all closed rows, in order: what no chunk of a level above covers.
CREATE FUNCTION chunk_cover(p_trial integer, p_grp text, p_closed integer) RETURNS SETOF metric_chunks
    LANGUAGE sql STABLE AS $$
    SELECT c.* FROM generate_series(1, 16) l,
        LATERAL (SELECT p_closed / 4 ^ (l - 1) below, p_closed / 4 ^ l above) x,
        LATERAL (SELECT * FROM metric_chunks WHERE trial_id = p_trial AND grp = p_grp AND level = l
                 AND seq >= 4 * floor(above)::integer AND seq < floor(below)::integer) c
    WHERE below >= 1 ORDER BY c.level DESC, c.seq
$$;

-- A trial's summaries with its tails.
CREATE FUNCTION trial_summary(p_trial integer, kept jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    h metric_heads;
BEGIN
    FOR h IN SELECT * FROM metric_heads WHERE trial_id = p_trial AND tail > 0 LOOP
        kept := summary_merge_chunk(kept, summary_key(h.grp), chunk_of_rows(p_trial, h.grp, h.closed_steps, h.steps));
    END LOOP;
    RETURN kept;
END $$;
CREATE FUNCTION trial_batches(p_trial integer) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT greatest(max(steps), 0) FROM metric_heads WHERE trial_id = p_trial
$$;

-- A finished trial is read from its chunks alone.
CREATE FUNCTION close_trial_chunks() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM close_chunk(NEW.id, grp) FROM metric_heads WHERE trial_id = NEW.id AND tail > 0;
    RETURN NULL;
END $$;
CREATE TRIGGER trials_close_chunks AFTER UPDATE OF state ON trials FOR EACH ROW
    WHEN (NEW.state IS DISTINCT FROM OLD.state AND NEW.state IN ('COMPLETED', 'CANCELED', 'ERROR'))
    EXECUTE FUNCTION close_trial_chunks();

-- common.v1.Metrics and the workload of a stored report.
DROP FUNCTION metrics_workload(metrics_6, boolean);
CREATE FUNCTION metrics_workload(x metrics, with_batches boolean) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('endTime', api_time(x.end_time), 'metrics', jsonb_build_object(
            'avgMetrics', coalesce(x.metrics->metrics_key(x.grp), '{}'),
            'batchMetrics', CASE WHEN with_batches AND x.batch_metrics IS NOT NULL THEN x.batch_metrics::jsonb
                                 ELSE '[]' END),
        'numInputs', 0, 'totalBatches', x.steps)
$$;

-- Latest and best validation of a trial from its live rows, and its experiment's best trial.
CREATE FUNCTION refresh_validations(p_trial integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    e record;
BEGIN
    SELECT x.id, x.searcher_metric, x.smaller_is_better INTO e
        FROM experiments x JOIN trials t ON t.experiment_id = x.id WHERE t.id = p_trial;
    UPDATE trials t SET
        latest_validation = (SELECT metrics_workload(m, false) FROM metrics m WHERE m.trial_id = p_trial
            AND m.grp = 'validation' AND NOT m.archived AND m.metrics->'validation_metrics' ? e.searcher_metric
            ORDER BY m.steps DESC, m.run_id DESC LIMIT 1),
        (best_validation, searcher_metric_value) = (SELECT metrics_workload(m, false), x.v FROM metrics m,
            LATERAL (SELECT searcher_value(m.metrics, e.searcher_metric) v) x
            WHERE m.trial_id = p_trial AND m.grp = 'validation' AND NOT m.archived AND x.v IS NOT NULL
            ORDER BY CASE WHEN e.smaller_is_better THEN x.v ELSE -x.v END, m.steps LIMIT 1)
        WHERE t.id = p_trial;
    PERFORM refresh_best_trial(e.id);
END $$;

-- Chunks, heads and summary of a trial from its live rows beyond p_steps, where p_grp keeps those below only.
CREATE FUNCTION reopen_chunks(p_trial integer, p_grp text, p_steps integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    h metric_heads;
    d jsonb;
    s jsonb := '{}';
BEGIN
    FOR h IN SELECT * FROM metric_heads WHERE trial_id = p_trial LOOP
        DELETE FROM metric_chunks WHERE trial_id = p_trial AND grp = h.grp
            AND last_steps > p_steps - (h.grp = p_grp)::integer;
        SELECT count(*), coalesce(max(last_steps), -1) INTO h.closed, h.closed_steps FROM metric_chunks
            WHERE trial_id = p_trial AND grp = h.grp AND level = 1;
        SELECT count(*), coalesce(max(steps), h.closed_steps) INTO h.tail, h.steps FROM metrics
            WHERE trial_id = p_trial AND grp = h.grp AND NOT archived AND steps > h.closed_steps;
        UPDATE metric_heads SET steps = h.steps, closed = h.closed, closed_steps = h.closed_steps, tail = h.tail
            WHERE trial_id = p_trial AND grp = h.grp;
        FOR d IN SELECT doc FROM chunk_cover(p_trial, h.grp, h.closed) LOOP
            s := summary_merge_chunk(s, summary_key(h.grp), d);
        END LOOP;
    END LOOP;
    UPDATE trials SET summary_metrics = s WHERE id = p_trial;
    PERFORM close_chunk(p_trial, grp) FROM metric_heads WHERE trial_id = p_trial AND tail >= 16;
END $$;

-- A newer run reports: what older runs reported beyond its steps is archived.
CREATE FUNCTION roll_back(p_trial integer, p_run integer, p_grp text, p_steps integer) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE metrics SET archived = true WHERE trial_id = p_trial AND NOT archived AND run_id < p_run
        AND steps >= p_steps AND (steps > p_steps OR grp = p_grp);
    IF FOUND THEN
        PERFORM reopen_chunks(p_trial, p_grp, p_steps);
        PERFORM refresh_validations(p_trial);
    END IF;
END $$;

-- A kept validation's consequences.
CREATE FUNCTION note_validation(p_trial integer, p_run integer, p_steps integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    x record;
BEGIN
    SELECT metrics_workload(m, false) doc, m.metrics->'validation_metrics' ? e.searcher_metric has,
           searcher_value(m.metrics, e.searcher_metric) v, t.searcher_metric_value best, e.smaller_is_better, e.id exp
        INTO x FROM trials t JOIN experiments e ON e.id = t.experiment_id JOIN metrics m ON m.trial_id = t.id
        WHERE t.id = p_trial AND m.trial_id = p_trial AND m.grp = 'validation' AND m.steps = p_steps AND m.run_id = p_run;
    IF x.has THEN
        UPDATE trials SET latest_validation = x.doc WHERE id = p_trial;
    END IF;
    IF x.v IS NOT NULL AND (x.best IS NULL OR CASE WHEN x.smaller_is_better THEN x.v < x.best ELSE x.v > x.best END) THEN
        UPDATE trials SET best_validation = x.doc, searcher_metric_value = x.v WHERE id = p_trial;
        UPDATE experiments SET best_trial_id = p_trial, best_metric = x.v WHERE id = x.exp AND (best_metric IS NULL
            OR CASE WHEN smaller_is_better THEN x.v < best_metric ELSE x.v > best_metric END);
    END IF;
END $$;

-- A report of steps that were reported before: what is new of it is added to its row.
CREATE FUNCTION report_again(p_trial integer, p_run integer, p_group text, p_steps integer, m jsonb, p_batches text)
    RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    k text := metrics_key(p_group);
    had jsonb; -- taken out of its row once: every time copies it
    gain jsonb;
    clash text;
    row_time timestamptz;
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
CREATE FUNCTION report_odd(p_trial integer, p_run integer, p_group text, p_steps integer, m jsonb,
                           p_time timestamptz, p_batches text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    groups_max CONSTANT integer := 100;
    h metric_heads;
BEGIN
    IF EXISTS (SELECT 1 FROM metrics WHERE trial_id = p_trial AND grp = p_group AND steps = p_steps AND run_id = p_run) THEN
        RETURN report_again(p_trial, p_run, p_group, p_steps, m, p_batches);
    END IF;
    PERFORM roll_back(p_trial, p_run, p_group, p_steps);
    INSERT INTO metrics (trial_id, grp, run_id, steps, metrics, batch_metrics, end_time)
        VALUES (p_trial, p_group, p_run, p_steps, m, p_batches, p_time);
    SELECT * INTO h FROM metric_heads WHERE trial_id = p_trial AND grp = p_group;
    IF NOT FOUND THEN
        IF (SELECT count(*) FROM metric_heads WHERE trial_id = p_trial) >= groups_max THEN
            RAISE EXCEPTION 'the trial has % metric groups, the most a trial may have; use fewer names', groups_max
                USING ERRCODE = '22D01';
        END IF;
        INSERT INTO metric_heads (trial_id, grp, run_id, steps, tail) VALUES (p_trial, p_group, p_run, p_steps, 1);
    ELSIF p_steps > h.closed_steps THEN
        UPDATE metric_heads SET run_id = p_run, steps = greatest(steps, p_steps), tail = tail + 1
            WHERE trial_id = p_trial AND grp = p_group;
    ELSE
        UPDATE metric_heads SET run_id = p_run WHERE trial_id = p_trial AND grp = p_group;
        PERFORM chunk_late(p_trial, p_group, p_steps, 1, m->metrics_key(p_group), p_time);
    END IF;
    RETURN NULL;
END $$;

DROP FUNCTION report_metrics(integer, integer, text, integer, jsonb, timestamptz);
-- One report. m: {avg_metrics | validation_metrics}; p_batches: JSON [{..}] or null. Returns '' when it is kept
-- (or was kept before), else 'unknown', 'stale', or 'overlap <metric>'.
CREATE FUNCTION report_metrics(p_trial integer, p_run integer, p_group text, p_steps integer, m jsonb,
                               p_time timestamptz, p_batches text DEFAULT NULL) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    t record;
    said text;
BEGIN
    SELECT x.run_id, h.run_id head_run, h.steps, h.tail INTO t FROM trials x
        LEFT JOIN metric_heads h ON h.trial_id = x.id AND h.grp = p_group WHERE x.id = p_trial FOR SHARE OF x;
    IF NOT FOUND THEN
        RETURN 'unknown';
    ELSIF t.run_id <> p_run THEN
        RETURN 'stale';
    END IF;
    IF t.head_run = p_run AND p_steps > t.steps THEN
        INSERT INTO metrics (trial_id, grp, run_id, steps, metrics, batch_metrics, end_time)
            VALUES (p_trial, p_group, p_run, p_steps, m, p_batches, p_time);
        UPDATE metric_heads SET steps = p_steps, tail = tail + 1 WHERE trial_id = p_trial AND grp = p_group;
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

-- What was reported so far moves over.
SELECT metric_partitions(p) FROM generate_series(0, coalesce((SELECT max(id) FROM trials), 0), 10000) p;
INSERT INTO metrics (trial_id, grp, run_id, steps, archived, id, end_time, metrics, batch_metrics)
    SELECT trial_id, grp, run_id, steps, archived, id, end_time, metrics - 'batch_metrics',
           (metrics->'batch_metrics')::text FROM metrics_6;
SELECT setval('metrics_id', coalesce((SELECT max(id) FROM metrics), 0) + 1, false);
INSERT INTO metric_heads (trial_id, grp, run_id, steps)
    SELECT trial_id, grp, max(run_id), coalesce(max(steps) FILTER (WHERE NOT archived), -1) FROM metrics GROUP BY 1, 2;
DROP TABLE metrics_6 CASCADE;
DROP FUNCTION rebuild_trial, summary_merge, summary_add;
-- Level-1 chunks of 16 rows, then the levels above, for rows that are already there.
CREATE FUNCTION chunk_rows_all(p_trial integer, p_grp text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    upto integer;
BEGIN
    FOR upto IN SELECT max(steps) FROM (SELECT steps, (row_number() OVER (ORDER BY steps) - 1) / 16 c FROM metrics
            WHERE trial_id = p_trial AND grp = p_grp AND NOT archived) x GROUP BY c ORDER BY c LOOP
        UPDATE metric_heads SET steps = upto, tail = (SELECT count(*) FROM metrics m WHERE m.trial_id = p_trial
            AND m.grp = p_grp AND NOT m.archived AND m.steps > closed_steps AND m.steps <= upto)
            WHERE trial_id = p_trial AND grp = p_grp;
        PERFORM close_chunk(p_trial, p_grp);
    END LOOP;
END $$;
UPDATE trials SET summary_metrics = '{}' WHERE id IN (SELECT trial_id FROM metric_heads);
SELECT chunk_rows_all(trial_id, grp) FROM metric_heads;
DROP FUNCTION chunk_rows_all;
SELECT refresh_validations(trial_id) FROM metric_heads WHERE grp = 'validation';
ALTER TABLE trials DROP COLUMN total_batches, DROP COLUMN latest_validation_id, DROP COLUMN best_validation_id;

-- trial.v1.Trial without its state.
CREATE OR REPLACE FUNCTION trial_doc(p_id integer) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', t.id, 'experimentId', t.experiment_id, 'startTime', api_time(t.start_time),
        'endTime', api_time(t.end_time),
        'restarts', least(t.restarts, coalesce((e.config->>'max_restarts')::integer, t.restarts)),
        'hparams', t.hparams, 'totalBatchesProcessed', coalesce(h.steps, 0),
        'bestValidation', t.best_validation, 'latestValidation', t.latest_validation,
        'bestCheckpoint', best_checkpoint_doc(t.id),
        'runnerState', t.runner_state,
        'wallClockTime', (SELECT coalesce(sum(seconds_between(a.start_time, coalesce(a.end_time, now()))), 0)
                          FROM allocations a WHERE a.trial_id = t.id),
        'warmStartCheckpointUuid', coalesce(t.warm_start_checkpoint, ''), 'taskId', t.task_id,
        'totalCheckpointSize', k.bytes::text, 'checkpointCount', k.n,
        'summaryMetrics', CASE WHEN h.tail > 0 THEN trial_summary(t.id, t.summary_metrics) ELSE t.summary_metrics END,
        'taskIds', jsonb_build_array(t.task_id),
        'searcherMetricValue', t.searcher_metric_value)
    FROM trials t JOIN experiments e ON e.id = t.experiment_id
    CROSS JOIN LATERAL (SELECT greatest(max(steps), 0) steps, sum(tail) tail FROM metric_heads WHERE trial_id = t.id) h
    CROSS JOIN LATERAL (SELECT count(*) n, coalesce(sum(c.bytes), 0) bytes FROM checkpoints c
                        WHERE c.trial_id = t.id AND c.state IN ('COMPLETED', 'PARTIALLY_DELETED')) k
    WHERE t.id = p_id
$$;
