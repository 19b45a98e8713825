-- Series for charts, from the coarsest chunks that have enough of them.

CREATE INDEX metric_chunks_steps ON metric_chunks (trial_id, grp, level, last_steps);

-- The items of metrics p_names over [p_from, p_to], in order of steps: of each item and metric its number in
-- p_names, and its lowest and highest point [value, steps, time]; high is null for a single report. The first
-- and the last report come as themselves.
CREATE FUNCTION series_items(p_trial integer, p_grp text, p_from integer, p_to integer, p_names text[], p_buckets bigint)
    RETURNS TABLE (name integer, low text, high text) LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    h metric_heads;
    lvl integer := 0;
    covered integer := p_from - 1;
    n bigint;
    k text := metrics_key(p_grp);
BEGIN
    SELECT * INTO h FROM metric_heads x WHERE x.trial_id = p_trial AND x.grp = p_grp;
    IF NOT FOUND THEN
        RETURN;
    ELSIF h.closed > 0 THEN
        lvl := floor(ln(h.closed) / ln(4) + 1e-9)::integer + 1;
    END IF;
    WHILE lvl > 0 LOOP
        SELECT count(*) INTO n FROM (SELECT 1 FROM metric_chunks c WHERE c.trial_id = p_trial AND c.grp = p_grp
            AND c.level = lvl AND c.last_steps >= p_from AND c.after_steps < p_to LIMIT p_buckets) x;
        EXIT WHEN n >= p_buckets;
        lvl := lvl - 1;
    END LOOP;
    IF lvl > 0 THEN
        RETURN QUERY SELECT x.ord::integer, point_text(m.metrics->k->x.nm, m.steps, m.end_time), NULL::text
            FROM (SELECT * FROM metrics r WHERE r.trial_id = p_trial AND r.grp = p_grp AND NOT r.archived
                  AND r.steps BETWEEN p_from AND p_to ORDER BY r.steps LIMIT 1) m, unnest(p_names) WITH ORDINALITY x(nm, ord)
            WHERE jsonb_typeof(m.metrics->k->x.nm) = 'number';
    END IF;
    WHILE lvl > 0 LOOP
        RETURN QUERY SELECT x.ord::integer, (c.doc->x.nm->2)::text, (c.doc->x.nm->3)::text
            FROM metric_chunks c, unnest(p_names) WITH ORDINALITY x(nm, ord)
            WHERE c.trial_id = p_trial AND c.grp = p_grp AND c.level = lvl AND c.last_steps > covered
              AND c.after_steps < p_to AND jsonb_typeof(c.doc->x.nm->1) = 'number' ORDER BY c.last_steps;
        SELECT coalesce(max(c.last_steps), covered) INTO covered FROM metric_chunks c WHERE c.trial_id = p_trial
            AND c.grp = p_grp AND c.level = lvl AND c.last_steps > covered AND c.after_steps < p_to;
        lvl := lvl - 1;
    END LOOP;
    -- The tail; where there is none, the last report once more.
    RETURN QUERY SELECT x.ord::integer, point_text(m.metrics->k->x.nm, m.steps, m.end_time), NULL::text
        FROM metrics m, unnest(p_names) WITH ORDINALITY x(nm, ord)
        WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
          AND m.steps > least(covered, h.steps - 1) AND m.steps <= p_to
          AND jsonb_typeof(m.metrics->k->x.nm) = 'number' ORDER BY m.steps;
END $$;
CREATE FUNCTION point_text(v jsonb, steps integer, at timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT '[' || v::text || ',' || steps || ',' || extract(epoch FROM at) || ']'
$$;
