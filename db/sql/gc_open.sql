-- The steps to be asked of agents now, together by what is asked: of experiment $1; 0: of all that have no collecting
-- task; -1: of these what is not due yet, too. One that is not reported comes again after 5 minutes, then ever less
-- often.
WITH up AS (
    UPDATE checkpoints c
    SET gc_tries = gc_tries + 1,
        gc_next = now() + least(3600, 300 * 2 ^ least(gc_tries, 4)) * interval '1 second'
    WHERE gc_step IN ('remove', 'restore', 'purge') AND ($1::bigint < 0 OR gc_next <= now())
      AND CASE WHEN $1::bigint > 0 THEN c.experiment_id = $1::bigint
               ELSE NOT EXISTS (SELECT 1 FROM allocations a
                                WHERE a.experiment_id = c.experiment_id AND a.kind = 'CHECKPOINT_GC'
                                  AND a.state <> 'TERMINATED') END
    RETURNING c.uuid, c.experiment_id, c.gc_globs,
              CASE WHEN gc_step <> 'remove' THEN gc_step
                   WHEN gc_globs IS NOT NULL THEN 'cut'
                   WHEN gc_rest_s > 0 THEN 'quarantine'
                   ELSE 'purge' END AS action
)
SELECT e.id, e.owner_id, e.job_id, e.config, up.action, up.gc_globs, jsonb_agg(up.uuid ORDER BY up.uuid)
FROM up JOIN experiments e ON e.id = up.experiment_id
GROUP BY e.id, up.action, up.gc_globs
ORDER BY e.id, up.action, up.gc_globs
