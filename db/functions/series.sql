-- Series of a metric for charts.

-- A report's point as a chunk has it. No number is longer than its 400 characters, but what is not one may be.
CREATE OR REPLACE FUNCTION point_text(v jsonb, steps integer, at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT '[' || left(v::text, 400) || ',' || steps || ',' || date_part('epoch', at) || ']'
$$;

-- The items of a metric over [p_from, p_to] as one text, in order of steps: of each chunk its lowest and highest point,
-- of a single report its one. From the coarsest chunks that give nearly p_buckets: somewhat fewer will do, since the
-- next finer ones are four times as many. The first and the last report come as themselves. Where no chunk is coarse enough
-- all reports do: with p_ready those of chunks, also beyond the bounds, as "#steps,steps;seconds,seconds;value,value".
CREATE OR REPLACE FUNCTION series_lines(p_trial integer, p_grp text, p_from integer, p_to integer, p_name text, p_buckets bigint,
                                        p_ready boolean) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    h metric_heads;
    lvl integer := 0;
    n bigint;
    path text[] := ARRAY[metrics_key(p_grp), p_name];
    whole boolean;
    covered integer := p_from - 1;
    ready boolean;
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
        -- Of each level below the three at most that no chunk above covers (found by seq: see chunk_cover()).
        IF lvl > 1 THEN
            SELECT string_agg(c.points, E'\n' ORDER BY c.last_steps) INTO finer FROM generate_series(1, lvl - 1) l, LATERAL (
                SELECT c.last_steps, c.points->>p_name points FROM metric_chunks c WHERE c.trial_id = p_trial
                  AND c.grp = p_grp AND c.level = l AND c.seq >= 4 * (h.closed >> 2 * l) AND c.seq < h.closed >> 2 * (l - 1)
                  AND c.last_steps + 0 >= p_from AND c.after_steps < p_to ORDER BY c.seq LIMIT 3) c;
        END IF;
        covered := least(greatest(h.closed_steps, covered), h.steps - 1); -- without a tail the last report once more
    ELSIF p_ready AND h.closed > 0 AND h.kept IS NULL AND p_from <= h.closed_steps THEN
        SELECT string_agg('#' || c.report_steps || ';' || c.report_times || ';' || c.list, E'\n' ORDER BY c.seq),
               count(*) = count(c.list) INTO chunks, ready
            FROM (SELECT c.seq, c.report_steps, c.report_times, c.report_values->>p_name list FROM metric_chunks c
                  WHERE c.trial_id = p_trial AND c.grp = p_grp AND c.level = 1 AND c.last_steps >= p_from AND c.after_steps < p_to
                  OFFSET 0) c;
        IF ready THEN
            covered := h.closed_steps;
        ELSE
            chunks := NULL;
        END IF;
    END IF;
    IF h.steps > covered THEN
        SELECT string_agg(x.point, E'\n') INTO tail
            FROM (SELECT point_text(m.metrics #> path, m.steps, m.end_time) point FROM metrics m
                  WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
                    AND m.steps > covered AND m.steps <= p_to ORDER BY m.steps) x;
    END IF;
    RETURN concat_ws(E'\n', first, chunks, finer, tail);
END $$;

-- As the former release reads it: a report a line.
CREATE OR REPLACE FUNCTION series_items(p_trial integer, p_grp text, p_from integer, p_to integer, p_name text, p_buckets bigint)
    RETURNS text LANGUAGE sql STABLE AS $$ SELECT series_lines(p_trial, p_grp, p_from, p_to, p_name, p_buckets, false) $$;
