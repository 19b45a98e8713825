-- Sums that NaN spoiled: up to 0044 each value among a metric's numbers that is none took 1e296 off the sum of its chunk,
-- and so off the chunks above and the trial's summary, whose mean said as much. Made again from the reports, where these are
-- still there; a summary of reports that were deleted for their age stays as it is.
DO $$
DECLARE
    bad record;
    up smallint;
    h metric_heads;
    d jsonb;
    s jsonb;
BEGIN
    CREATE TEMP TABLE spoiled ON COMMIT DROP AS SELECT c.trial_id, c.grp, c.level, c.seq FROM metric_chunks c
        WHERE c.level = 1 AND jsonb_path_exists(c.doc, '$.*[1] ? (@ <= -1e296)')
        AND c.n = (SELECT count(*) FROM metrics m WHERE m.trial_id = c.trial_id AND m.grp = c.grp AND NOT m.archived
                   AND m.steps > c.after_steps AND m.steps <= c.last_steps);
    IF NOT EXISTS (SELECT FROM spoiled) THEN
        RETURN;
    END IF;
    LOCK TABLE metric_heads IN SHARE ROW EXCLUSIVE MODE; -- a leader may serve meanwhile: reports wait
    UPDATE metric_chunks c SET doc = chunk_of_rows(c.trial_id, c.grp, c.after_steps, c.last_steps) FROM spoiled x
        WHERE c.trial_id = x.trial_id AND c.grp = x.grp AND c.level = 1 AND c.seq = x.seq;
    FOR up IN SELECT DISTINCT level FROM metric_chunks WHERE level > 1 ORDER BY 1 LOOP
        UPDATE metric_chunks c SET doc = (SELECT chunk_of_chunks(array_agg(l.doc ORDER BY l.seq)) FROM metric_chunks l
                WHERE l.trial_id = c.trial_id AND l.grp = c.grp AND l.level = up - 1 AND l.seq BETWEEN 4 * c.seq AND 4 * c.seq + 3)
            FROM (SELECT DISTINCT trial_id, grp, seq >> 2 * (up - 1) seq FROM spoiled) x
            WHERE c.trial_id = x.trial_id AND c.grp = x.grp AND c.level = up AND c.seq = x.seq;
    END LOOP;
    FOR bad IN SELECT DISTINCT trial_id FROM spoiled LOOP
        s := '{}';
        FOR h IN SELECT * FROM metric_heads WHERE trial_id = bad.trial_id LOOP
            IF h.kept IS NOT NULL THEN
                s := s || jsonb_build_object(summary_key(h.grp), h.kept);
            END IF;
            FOR d IN SELECT doc FROM chunk_cover(h.trial_id, h.grp, h.closed) WHERE h.kept IS NULL
                     UNION ALL (SELECT doc FROM metric_chunks WHERE h.kept IS NOT NULL AND trial_id = h.trial_id AND grp = h.grp
                                AND level = 1 AND after_steps >= h.kept_steps ORDER BY seq) LOOP
                s := summary_merge_chunk(s, summary_key(h.grp), d);
            END LOOP;
        END LOOP;
        UPDATE trials SET summary_metrics = s WHERE id = bad.trial_id;
    END LOOP;
END $$;
