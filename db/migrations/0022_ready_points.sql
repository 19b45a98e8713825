-- A chunk's points as text that is ready to be sent, and a metric's whole series as one text: for charts of long series
-- PostgreSQL took longer to write each chunk's numbers, and a row for each, than to find them.

-- Of each metric of numbers its lowest and highest point: "[value, steps, time][value, steps, time]".
CREATE FUNCTION chunk_points(doc jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (SELECT coalesce(jsonb_object_agg(key, (value->2)::text || (value->3)::text), '{}')
            FROM jsonb_each(doc) WHERE jsonb_typeof(value->1) = 'number');
END $$;
ALTER TABLE metric_chunks ADD COLUMN points jsonb GENERATED ALWAYS AS (chunk_points(doc)) STORED;

-- As in 0009, with what is generated.
CREATE OR REPLACE FUNCTION metric_partitions(p_trial integer) RETURNS void LANGUAGE plpgsql AS $$
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
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING STORAGE '
                           'INCLUDING COMPRESSION)', part, base);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', base, part,
                           p * size, least((p + 1) * size, 2147483647));
        END LOOP;
    END LOOP;
END $$;

-- The items of metric p_name over [p_from, p_to], in order of steps, a line each: a report's point or a chunk's two. The
-- first and the last report come as themselves. A report's value may be no number.
DROP FUNCTION series_items;
CREATE FUNCTION series_items(p_trial integer, p_grp text, p_from integer, p_to integer, p_name text, p_buckets bigint)
    RETURNS text LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    h metric_heads;
    lvl integer := 0;
    n bigint;
    path text[] := ARRAY[metrics_key(p_grp), p_name];
    whole boolean;
    covered integer := p_from - 1;
    first text;
    chunks text;
    finer text;
    tail text;
BEGIN
    SELECT * INTO h FROM metric_heads x WHERE x.trial_id = p_trial AND x.grp = p_grp;
    IF NOT FOUND THEN
        RETURN '';
    ELSIF 3 * h.closed::bigint >= 2 * p_buckets THEN -- the coarsest level that can have enough
        lvl := floor(ln(1.5 * h.closed / p_buckets) / ln(4) + 1e-9)::integer + 1;
    END IF;
    whole := p_from <= 0 AND p_to >= h.steps;
    WHILE lvl > 0 LOOP
        n := h.closed >> 2 * (lvl - 1);
        IF NOT whole THEN
            SELECT count(*) INTO n FROM (SELECT 1 FROM metric_chunks c WHERE c.trial_id = p_trial AND c.grp = p_grp
                AND c.level = lvl AND c.last_steps >= p_from AND c.after_steps < p_to LIMIT p_buckets) x;
        END IF;
        EXIT WHEN 3 * n >= 2 * p_buckets; -- somewhat fewer than are drawn: the level below has four times as many
        lvl := lvl - 1;
    END LOOP;
    IF lvl > 0 THEN
        SELECT point_text(m.metrics #> path, m.steps, m.end_time) INTO first FROM metrics m
            WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
              AND m.steps BETWEEN p_from AND p_to ORDER BY m.steps LIMIT 1;
        SELECT string_agg(x.points, E'\n') INTO chunks
            FROM (SELECT c.points->>p_name points FROM metric_chunks c WHERE c.trial_id = p_trial AND c.grp = p_grp
                  AND c.level = lvl AND c.last_steps >= p_from AND c.after_steps < p_to ORDER BY c.last_steps) x;
        -- Of each level below the few that no chunk above covers (+ 0: found by seq).
        IF lvl > 1 THEN
            SELECT string_agg(c.points, E'\n' ORDER BY c.last_steps) INTO finer FROM generate_series(1, lvl - 1) l, LATERAL (
                SELECT c.last_steps, c.points->>p_name points FROM metric_chunks c WHERE c.trial_id = p_trial
                  AND c.grp = p_grp AND c.level = l AND c.seq >= 4 * (h.closed >> 2 * l) AND c.seq < h.closed >> 2 * (l - 1)
                  AND c.last_steps + 0 >= p_from AND c.after_steps < p_to OFFSET 0) c;
        END IF;
        covered := greatest(h.closed_steps, covered);
    END IF;
    -- The tail; where there is none, the last report once more.
    SELECT string_agg(x.point, E'\n') INTO tail
        FROM (SELECT point_text(m.metrics #> path, m.steps, m.end_time) point FROM metrics m
              WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
                AND m.steps > least(covered, h.steps - 1) AND m.steps <= p_to ORDER BY m.steps) x;
    RETURN concat_ws(E'\n', first, chunks, finer, tail);
END $$;
-- (No number is longer than its 400 characters, but what is not one may be.)
CREATE FUNCTION point_text(v jsonb, steps integer, at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT '[' || left(v::text, 400) || ',' || steps || ',' || date_part('epoch', at) || ']'
$$;
