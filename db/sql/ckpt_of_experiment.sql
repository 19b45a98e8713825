-- What an experiment's deletion has to know: its checkpoints, one that something holds, whether there are reports.
SELECT e.id, e.owner_id, e.config,
       (SELECT coalesce(jsonb_agg(c.uuid ORDER BY c.uuid), '[]') FROM checkpoints c
        WHERE c.experiment_id = e.id AND (c.state <> 'DELETED' OR c.gc_step IS NOT NULL)),
       held.uuid,
       EXISTS (SELECT 1 FROM metric_heads h JOIN trials t ON t.id = h.trial_id WHERE t.experiment_id = e.id),
       checkpoint_models(held.uuid)
FROM experiments e, LATERAL (
    SELECT min(c.uuid) uuid FROM checkpoints c, checkpoint_holds(c) h
    WHERE c.experiment_id = e.id AND h.held & 336 > 0
) held
WHERE e.id = $1::bigint
