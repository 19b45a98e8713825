-- Chunks: 16 live reports of a group as one row (level 1), and four chunks as one of the level above.

-- The chunk of the live rows of (p_after, p_upto], and their numbers as it keeps them for charts. In plpgsql with a
-- generic plan, since the planner thinks better of one that knows the partition, anew each time. Made without a sort
-- per metric; steps and times of the extremes are found by position, so that nothing depends on the rows' order: where
-- that is not the one of the steps, no numbers are kept, nor of a metric that is no number in some row. Nor of very
-- many metrics, of which nobody draws each.
CREATE OR REPLACE FUNCTION chunk_made(p_trial integer, p_grp text, p_after integer, p_upto integer, OUT doc jsonb,
                                      OUT report_steps text, OUT report_times text, OUT report_values jsonb)
    LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    WITH y AS MATERIALIZED (
        SELECT key, count(*) k, count(num) n,
               count(*) FILTER (WHERE num IS NULL AND metric_kind(value) = 'nan') nans,
               min(metric_kind(value)) FILTER (WHERE num IS NULL) kind,
               max(metric_kind(value)) FILTER (WHERE num IS NULL) kind2,
               sum(least(greatest(num, -1e296), 1e296)) FILTER (WHERE num IS NOT NULL) total,
               min(num) low, max(num) high, max(r.steps) newest, string_agg(value::text, ',') list,
               array_agg(num) nums, array_agg(r.steps) steps, array_agg(at) times, array_agg(value) vals
        FROM (SELECT v.key, v.value, m.steps, m.at,
                     CASE WHEN jsonb_typeof(v.value) = 'number' THEN v.value::float8 END num
              FROM (SELECT m.steps, date_part('epoch', m.end_time) at, m.metrics->metrics_key(m.grp) named FROM metrics m
                    WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
                      AND m.steps > p_after AND m.steps <= p_upto ORDER BY m.steps OFFSET 0) m,
                   jsonb_each(m.named) v OFFSET 0) r -- each number is read once
        GROUP BY key),
    w AS (SELECT l.*, l.steps = ARRAY(SELECT s FROM unnest(l.steps) s ORDER BY s) AND (SELECT count(*) FROM y) <= 100 fit
          FROM (SELECT y.steps, y.times FROM y ORDER BY y.k DESC LIMIT 1) l)
    SELECT jsonb_object_agg(x.key, CASE
            WHEN n > 0 AND n + nans = k THEN jsonb_build_array(n, total,
                jsonb_build_array(low, x.steps[low_at], x.times[low_at]),
                jsonb_build_array(high, x.steps[high_at], x.times[high_at]), last)
            ELSE jsonb_build_array(k, CASE WHEN n + nans = k THEN 'nan' WHEN n = 0 AND kind = kind2 THEN kind ELSE 'string' END,
                                   last) END),
        array_to_string(w.steps, ','), array_to_string(w.times, ','),
        jsonb_object_agg(x.key, x.list) FILTER (WHERE w.fit AND x.n = x.k AND x.steps = w.steps)
        INTO doc, report_steps, report_times, report_values
        FROM (SELECT y.*, array_position(nums, low) low_at, array_position(nums, high) high_at,
                     vals[array_position(steps, newest)] last FROM y) x, w GROUP BY w.steps, w.times;
    doc := coalesce(doc, '{}');
END $$;

-- Chunks in order as one.
CREATE OR REPLACE FUNCTION chunk_of_chunks(docs jsonb[]) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
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

-- Of each metric of numbers its lowest and highest point, "[value, steps, time][value, steps, time]", as text that is
-- ready to be sent: for long series PostgreSQL took longer to write the numbers than to find them.
CREATE OR REPLACE FUNCTION chunk_points(doc jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (SELECT coalesce(jsonb_object_agg(key, (value->2)::text || (value->3)::text), '{}')
            FROM jsonb_each(doc) WHERE jsonb_typeof(value->1) = 'number');
END $$;

-- The fewest chunks that hold all closed rows, in order: what no chunk of a level above covers.
CREATE OR REPLACE FUNCTION chunk_cover(p_trial integer, p_grp text, p_closed integer) RETURNS SETOF metric_chunks
    LANGUAGE sql STABLE AS $$
    SELECT c.* FROM generate_series(1, 16) l,
        LATERAL (SELECT p_closed / 4 ^ (l - 1) below, p_closed / 4 ^ l above) x,
        LATERAL (SELECT * FROM metric_chunks WHERE trial_id = p_trial AND grp = p_grp AND level = l
                 AND seq >= 4 * floor(above)::integer AND seq < floor(below)::integer) c
    WHERE below >= 1 ORDER BY c.level DESC, c.seq
$$;

-- The tail becomes a level-1 chunk, full quartets become chunks of the levels above, and the steps are kept. It refuses
-- nothing for its names, since a trial's end closes chunks too; what is counted here is exact.
CREATE OR REPLACE FUNCTION close_chunk(p_trial integer, p_grp text) RETURNS void LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    h metric_heads;
    c integer;
    up integer := 1;
    made record;
    s jsonb;
BEGIN
    SELECT * INTO h FROM metric_heads WHERE trial_id = p_trial AND grp = p_grp;
    IF h.tail = 0 THEN
        RETURN;
    END IF;
    SELECT * INTO made FROM chunk_made(p_trial, p_grp, h.closed_steps, h.steps);
    PERFORM keep_steps(p_trial, p_grp, h.closed_steps, h.steps);
    INSERT INTO metric_chunks (trial_id, grp, level, seq, after_steps, last_steps, n, doc, report_steps, report_times, report_values)
        VALUES (p_trial, p_grp, 1, h.closed, h.closed_steps, h.steps, h.tail, made.doc, made.report_steps, made.report_times,
                made.report_values);
    UPDATE trials SET summary_metrics = summary_merge_chunk(summary_metrics, summary_key(p_grp), made.doc),
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

-- A row, or metrics of a row, that came after its chunk was closed: each level's chunk of these steps takes them in.
-- What it keeps of its reports' numbers is not all of them any more.
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
    UPDATE metric_chunks c SET n = c.n + p_rows, doc = chunk_of_chunks(ARRAY[c.doc, d]), report_values = NULL
        FROM (SELECT level, min(seq) seq FROM metric_chunks
              WHERE trial_id = p_trial AND grp = p_grp AND last_steps >= p_steps GROUP BY level) x
        WHERE c.trial_id = p_trial AND c.grp = p_grp AND c.level = x.level AND c.seq = x.seq;
    UPDATE trials SET summary_metrics = summary_merge_chunk(summary_metrics, summary_key(p_grp), d) WHERE id = p_trial;
END $$;

-- A finished trial is read from its chunks alone. Its end is more than they are: where they cannot be made, for their
-- size, its last reports stay out of them and are looked for in the tail.
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
CREATE TRIGGER trials_close_chunks AFTER UPDATE OF state ON trials FOR EACH ROW
    WHEN (NEW.state IS DISTINCT FROM OLD.state AND NEW.state IN ('COMPLETED', 'CANCELED', 'ERROR'))
    EXECUTE FUNCTION close_trial_chunks();

-- How many live reports a group has: counted by its chunks where it has many.
CREATE OR REPLACE FUNCTION live_reports(h metric_heads) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF h.closed > 1000 THEN
        RETURN (SELECT coalesce(sum(c.n), 0) FROM chunk_cover(h.trial_id, h.grp, h.closed) c) + h.tail;
    END IF;
    RETURN (SELECT count(*) FROM metrics m WHERE m.trial_id = h.trial_id AND m.grp = h.grp)
         - (SELECT count(*) FROM metrics m WHERE m.trial_id = h.trial_id AND m.grp = h.grp AND m.archived);
END $$;
