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

-- The same where each of these reports, in order of their steps, has a number of every name, as mostly: looked up by
-- name, not unfolded row by row, which takes half the time. Else null.
CREATE OR REPLACE FUNCTION chunk_of_numbers(docs jsonb[], p_steps integer[], p_times double precision[], OUT doc jsonb,
                                            OUT report_values jsonb) LANGUAGE plpgsql STABLE AS $$
DECLARE
    n CONSTANT integer := cardinality(docs);
    names_drawn CONSTANT integer := 100;
    known text[] := ARRAY(SELECT jsonb_object_keys(docs[n]) LIMIT names_drawn + 1);
    whole boolean;
BEGIN
    IF cardinality(known) NOT BETWEEN 1 AND names_drawn OR p_steps[n - 1] = p_steps[n]
       OR EXISTS (SELECT FROM unnest(docs) d WHERE d - known <> '{}') THEN
        RETURN;
    END IF;
    SELECT bool_and(x.numbers = n), jsonb_object_agg(k, jsonb_build_array(n, x.total,
            jsonb_build_array(low, p_steps[array_position(nums, low)], p_times[array_position(nums, low)]),
            jsonb_build_array(high, p_steps[array_position(nums, high)], p_times[array_position(nums, high)]), docs[n]->k)),
        jsonb_object_agg(k, x.list)
        INTO whole, doc, report_values
        FROM unnest(known) k, LATERAL (
            SELECT count(num) numbers, sum(least(greatest(num, -1e296), 1e296)) total, min(num) low, max(num) high,
                   array_agg(num) nums, string_agg(v::text, ',') list
            FROM (SELECT y.v, CASE WHEN jsonb_typeof(y.v) = 'number' THEN y.v::float8 END num
                  FROM (SELECT d->k v FROM unnest(docs) d OFFSET 0) y OFFSET 0) z) x;
    IF NOT whole THEN
        doc := NULL;
    END IF;
END $$;

-- Four chunks in order as one, where each has numbers of every name, as mostly; else null. Their lowest and highest
-- points are compared as they are kept.
CREATE OR REPLACE FUNCTION chunk_of_four(docs jsonb[]) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    known text[] := ARRAY(SELECT jsonb_object_keys(docs[4]));
BEGIN
    IF docs[1] - known <> '{}' OR docs[2] - known <> '{}' OR docs[3] - known <> '{}' THEN
        RETURN NULL;
    END IF;
    RETURN (
    SELECT CASE WHEN bool_and(whole) THEN jsonb_object_agg(k, jsonb_build_array(n, metric_bounded(total), low, high, last)) END
    FROM (SELECT k, whole, CASE WHEN whole THEN (a->0)::bigint + (b->0)::bigint + (c->0)::bigint + (d->0)::bigint END n,
                 CASE WHEN whole THEN metric_bounded((a->1)::float8) + metric_bounded((b->1)::float8)
                      + metric_bounded((c->1)::float8) + metric_bounded((d->1)::float8) END total,
                 least(a->2, b->2, c->2, d->2) low, greatest(a->3, b->3, c->3, d->3) high, d->-1 last
          FROM (SELECT k, a, b, c, d, coalesce(jsonb_typeof(a->1) = 'number' AND jsonb_typeof(b->1) = 'number'
                           AND jsonb_typeof(c->1) = 'number' AND jsonb_typeof(d->1) = 'number', false) whole
                FROM (SELECT k, docs[1]->k, docs[2]->k, docs[3]->k, docs[4]->k FROM unnest(known) k OFFSET 0) w(k, a, b, c, d)
                OFFSET 0) x OFFSET 0) y);
END $$;

-- Chunks in order as one.
CREATE OR REPLACE FUNCTION chunk_of_chunks(docs jsonb[]) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    quick jsonb := CASE WHEN cardinality(docs) = 4 THEN chunk_of_four(docs) END;
BEGIN
    IF quick IS NOT NULL THEN
        RETURN quick;
    END IF;
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

-- The fewest chunks that hold all closed rows, in order: what no chunk of a level above covers, of each level three at most
-- (the order and the limit have them found by seq: the index of steps would read the level).
CREATE OR REPLACE FUNCTION chunk_cover(p_trial integer, p_grp text, p_closed integer) RETURNS SETOF metric_chunks
    LANGUAGE sql STABLE AS $$
    SELECT c.* FROM generate_series(1, 16) l,
        LATERAL (SELECT p_closed / 4 ^ (l - 1) below, p_closed / 4 ^ l above) x,
        LATERAL (SELECT * FROM metric_chunks WHERE trial_id = p_trial AND grp = p_grp AND level = l
                 AND seq >= 4 * floor(above)::integer AND seq < floor(below)::integer ORDER BY seq LIMIT 3) c
    WHERE below >= 1 ORDER BY c.level DESC, c.seq
$$;

-- The tail as a chunk, its steps kept. Reports of tens of thousands of bytes are not gathered in one array.
CREATE OR REPLACE FUNCTION tail_made(h metric_heads, OUT doc jsonb, OUT report_steps text, OUT report_times text,
                                     OUT report_values jsonb) LANGUAGE plpgsql AS $$
DECLARE
    gathered_max CONSTANT integer := 64;
    docs jsonb[];
    at_steps integer[];
    times double precision[];
BEGIN
    IF h.tail <= gathered_max THEN
        SELECT array_agg(CASE WHEN pg_column_size(m.metrics) < 20000 THEN m.metrics->metrics_key(h.grp) END),
               array_agg(m.steps), array_agg(m.at) INTO docs, at_steps, times
            FROM (SELECT x.metrics, x.steps, date_part('epoch', x.end_time) at FROM metrics x
                  WHERE x.trial_id = h.trial_id AND x.grp = h.grp AND NOT x.archived
                    AND x.steps > h.closed_steps AND x.steps <= h.steps ORDER BY x.steps OFFSET 0) m;
        SELECT * INTO doc, report_values FROM chunk_of_numbers(docs, at_steps, times);
    END IF;
    IF doc IS NULL THEN
        SELECT * INTO doc, report_steps, report_times, report_values
            FROM chunk_made(h.trial_id, h.grp, h.closed_steps, h.steps);
        PERFORM keep_steps(h.trial_id, h.grp, h.closed_steps, h.steps);
    ELSE
        report_steps := array_to_string(at_steps, ',');
        report_times := array_to_string(times, ',');
        IF NOT steps_are_kept(h.trial_id, h.grp, at_steps, docs) THEN
            PERFORM keep_steps(h.trial_id, h.grp, h.closed_steps, h.steps);
        END IF;
    END IF;
END $$;

-- The tail becomes a level-1 chunk, full quartets become chunks of the levels above. It refuses nothing for its names,
-- since a trial's end closes chunks too; what is counted here is exact.
CREATE OR REPLACE FUNCTION close_chunk(p_trial integer, p_grp text) RETURNS void LANGUAGE plpgsql
    SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
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
    made := tail_made(h);
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
