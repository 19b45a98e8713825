-- Chunks: 16 live reports of a group as one row (level 1), and four chunks as one of the level above.

-- The chunk of the live rows of (p_after, p_upto], of one metric only where p_name is given. In plpgsql with a
-- generic plan, since the planner thinks better of one that knows the partition, anew each time. Made without a sort
-- per metric; steps and times of the extremes are found by position, so that nothing depends on the rows' order.
CREATE OR REPLACE FUNCTION chunk_of_rows(p_trial integer, p_grp text, p_after integer, p_upto integer, p_name text DEFAULT NULL) RETURNS jsonb
    LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan SET enable_seqscan = off AS $$
BEGIN
    RETURN (
    SELECT coalesce(jsonb_object_agg(x.key, CASE
        WHEN n > 0 AND n + nans = k THEN jsonb_build_array(n, total,
            jsonb_build_array(low, steps[low_at], times[low_at]),
            jsonb_build_array(high, steps[high_at], times[high_at]), last)
        ELSE jsonb_build_array(k, CASE WHEN n + nans = k THEN 'nan' WHEN n = 0 AND kind = kind2 THEN kind ELSE 'string' END,
                               last) END), '{}')
    FROM (SELECT y.*, array_position(nums, low) low_at, array_position(nums, high) high_at,
                 vals[array_position(steps, newest)] last
          FROM (SELECT key, count(*) k, count(num) n,
                       count(*) FILTER (WHERE num IS NULL AND metric_kind(value) = 'nan') nans,
                       min(metric_kind(value)) FILTER (WHERE num IS NULL) kind,
                       max(metric_kind(value)) FILTER (WHERE num IS NULL) kind2,
                       sum(least(greatest(num, -1e296), 1e296)) FILTER (WHERE num IS NOT NULL) total,
                       min(num) low, max(num) high, max(r.steps) newest,
                       array_agg(num) nums, array_agg(r.steps) steps, array_agg(at) times, array_agg(value) vals
                FROM (SELECT v.key, v.value, m.steps, date_part('epoch', m.end_time) at,
                             CASE WHEN jsonb_typeof(v.value) = 'number' THEN v.value::float8 END num
                      FROM metrics m, LATERAL (SELECT m.metrics->metrics_key(m.grp) all_of_it OFFSET 0) o,
                           jsonb_each(CASE WHEN p_name IS NULL THEN o.all_of_it
                                           WHEN o.all_of_it ? p_name THEN jsonb_build_object(p_name, o.all_of_it->p_name) END) v
                      WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
                        AND m.steps > p_after AND m.steps <= p_upto OFFSET 0) r -- each number is read once
                GROUP BY key) y) x);
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

-- A row, or metrics of a row, that came after its chunk was closed: each level's chunk of these steps takes them in.
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
