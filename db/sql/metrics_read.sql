-- The next 1000 reports of the trials $1, of the group $2 or of all, after ($3 steps, report $4).
SELECT m.trial_id "trialId", m.end_time "endTime",
       CASE WHEN m.batch_metrics IS NULL THEN m.metrics
            ELSE m.metrics || jsonb_build_object('batch_metrics', m.batch_metrics::jsonb) END metrics,
       m.steps "totalBatches", m.archived, m.id, m.run_id "trialRunId", m.grp "group"
FROM metric_heads h, LATERAL (
    SELECT * FROM metrics
    WHERE trial_id = h.trial_id AND grp = h.grp AND steps >= $3::bigint
      AND (steps, id) > ($3::bigint, $4::bigint) AND NOT archived
    ORDER BY steps LIMIT 1000
) m
WHERE h.trial_id IN (SELECT x::bigint FROM jsonb_array_elements_text($1::jsonb) x)
  AND ($2::text IS NULL OR h.grp = $2)
ORDER BY m.steps, m.id LIMIT 1000
