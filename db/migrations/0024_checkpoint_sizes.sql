-- A trial shows its best checkpoint, with the sizes of its files as strings: a list of trials spent a seventh of its time
-- on making those at each look. They are kept beside what was reported.
ALTER TABLE checkpoints ADD COLUMN sizes jsonb GENERATED ALWAYS AS (checkpoint_resources(resources)) STORED;

-- As in 0005 and 0015, as text that is sent as it is.
DROP FUNCTION best_checkpoint_doc, checkpoint_workload;
CREATE FUNCTION checkpoint_workload(c checkpoints) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_build_object('uuid', c.uuid, 'endTime', api_time(c.report_time), 'state', 'STATE_' || c.state,
        'resources', c.sizes, 'totalBatches', c.steps, 'metadata', c.metadata)
$$;
CREATE FUNCTION best_checkpoint_doc(p_trial integer) RETURNS json LANGUAGE plpgsql STABLE
    SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (SELECT checkpoint_workload(c) FROM checkpoints c JOIN experiments e ON e.id = c.experiment_id,
        LATERAL (SELECT searcher_value(m.metrics, e.searcher_metric) v FROM metrics m WHERE m.trial_id = p_trial
                 AND m.grp = 'validation' AND m.steps = c.steps AND NOT m.archived ORDER BY m.id DESC LIMIT 1) x
        WHERE c.trial_id = p_trial AND c.state = 'COMPLETED' AND x.v IS NOT NULL
        ORDER BY CASE WHEN e.smaller_is_better THEN x.v ELSE -x.v END, c.steps LIMIT 1);
END $$;
