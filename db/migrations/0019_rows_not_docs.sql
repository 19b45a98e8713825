-- The documents of experiments and trials are made by the master now, of columns (db/db_doc.h): PostgreSQL took longer
-- to write their text than to find their rows.
DROP FUNCTION experiment_docs, experiment_doc, trial_docs, trial_doc;

-- A trial's live reports are counted as all that the key's index holds less those that were rolled back.
CREATE INDEX metrics_archived ON metrics (trial_id, grp) WHERE archived;

-- As in 0018, but a point comes as it lies in its row: of a report its value, steps and time, of a chunk the chunk's
-- entry for the metric, with steps null.
DROP FUNCTION series_items, point_text;
CREATE FUNCTION series_items(p_trial integer, p_grp text, p_from integer, p_to integer, p_names text[], p_buckets bigint)
    RETURNS TABLE (name integer, item text, steps integer, at double precision) LANGUAGE plpgsql STABLE
    SET plan_cache_mode = force_generic_plan AS $$
#variable_conflict use_column
DECLARE
    h metric_heads;
    lvl integer := 0;
    n bigint;
    k text := metrics_key(p_grp);
    whole boolean;
    covered integer;
BEGIN
    SELECT * INTO h FROM metric_heads x WHERE x.trial_id = p_trial AND x.grp = p_grp;
    IF NOT FOUND THEN
        RETURN;
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
        RETURN QUERY SELECT x.ord::integer, v.value::text, m.steps, date_part('epoch', m.end_time)
            FROM (SELECT * FROM metrics r WHERE r.trial_id = p_trial AND r.grp = p_grp AND NOT r.archived
                  AND r.steps BETWEEN p_from AND p_to ORDER BY r.steps LIMIT 1) m, unnest(p_names) WITH ORDINALITY x(nm, ord),
                 LATERAL (SELECT m.metrics->k->x.nm value OFFSET 0) v
            WHERE jsonb_typeof(v.value) = 'number';
        -- All chunks of the level, and of each below it the few that no chunk above covers (+ 0: found by seq).
        RETURN QUERY SELECT x.ord::integer, (c.doc->x.nm)::text, NULL::integer, NULL::double precision
            FROM (SELECT c.last_steps, c.doc FROM metric_chunks c WHERE c.trial_id = p_trial AND c.grp = p_grp
                    AND c.level = lvl AND c.last_steps >= p_from AND c.after_steps < p_to
                  UNION ALL SELECT c.last_steps, c.doc FROM generate_series(1, lvl - 1) l, LATERAL (
                    SELECT c.last_steps, c.doc FROM metric_chunks c WHERE c.trial_id = p_trial AND c.grp = p_grp
                      AND c.level = l AND c.seq >= 4 * (h.closed >> 2 * l) AND c.seq < h.closed >> 2 * (l - 1)
                      AND c.last_steps + 0 >= p_from AND c.after_steps < p_to OFFSET 0) c) c,
                 unnest(p_names) WITH ORDINALITY x(nm, ord)
            WHERE c.doc ? x.nm ORDER BY c.last_steps;
    END IF;
    covered := CASE WHEN lvl > 0 THEN greatest(h.closed_steps, p_from - 1) ELSE p_from - 1 END;
    -- The tail; where there is none, the last report once more.
    RETURN QUERY SELECT x.ord::integer, v.value::text, m.steps, date_part('epoch', m.end_time)
        FROM metrics m, unnest(p_names) WITH ORDINALITY x(nm, ord),
             LATERAL (SELECT m.metrics->k->x.nm value OFFSET 0) v
        WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
          AND m.steps > least(covered, h.steps - 1) AND m.steps <= p_to
          AND jsonb_typeof(v.value) = 'number' ORDER BY m.steps;
END $$;
