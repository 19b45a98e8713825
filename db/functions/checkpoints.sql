-- Checkpoints.

-- A checkpoint's files as the API has them: bytes in words.
CREATE OR REPLACE FUNCTION checkpoint_resources(r jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (SELECT coalesce(jsonb_object_agg(key, value #>> '{}'), '{}') FROM jsonb_each(r));
END $$;

-- A checkpoint as CheckpointWorkload of the API.
CREATE OR REPLACE FUNCTION checkpoint_workload(c checkpoints) RETURNS json LANGUAGE sql STABLE AS $$
    SELECT json_build_object('uuid', c.uuid, 'endTime', api_time(c.report_time), 'state', 'STATE_' || c.state,
        'resources', c.sizes, 'totalBatches', c.steps, 'metadata', c.metadata)
$$;

-- The checkpoint of a trial's best validation, each one's value looked up once.
CREATE OR REPLACE FUNCTION best_checkpoint_doc(p_trial integer) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT checkpoint_workload(c) FROM checkpoints c JOIN experiments e ON e.id = c.experiment_id,
        LATERAL (SELECT searcher_value(m.metrics, e.searcher_metric) v FROM metrics m WHERE m.trial_id = p_trial
                 AND m.grp = 'validation' AND m.steps = c.steps AND NOT m.archived ORDER BY m.id DESC LIMIT 1) x
        WHERE c.trial_id = p_trial AND c.state = 'COMPLETED' AND x.v IS NOT NULL
        ORDER BY CASE WHEN e.smaller_is_better THEN x.v ELSE -x.v END, c.steps LIMIT 1);
END $$;

-- checkpoint.v1.Checkpoint. Its metrics are looked up by values that are known when their plan begins, so that one
-- partition is opened and not all; the configuration is there as text.
CREATE OR REPLACE FUNCTION checkpoint_doc(p_uuid text) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
    c checkpoints;
    training jsonb;
BEGIN
    SELECT * INTO c FROM checkpoints x WHERE x.uuid = p_uuid;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT m.metrics INTO training FROM metrics m WHERE m.trial_id = c.trial_id AND m.steps = c.steps
        AND m.grp = 'training' AND NOT m.archived ORDER BY m.id DESC LIMIT 1;
    RETURN (SELECT CASE WHEN c.allocation_id IS NULL THEN '{' ELSE '{"allocationId":' || to_json(c.allocation_id) || ',' END ||
        CASE WHEN c.hashes IS NULL OR c.state = 'DELETED' THEN '' ELSE '"hashes":' || c.hashes::text || ',' END ||
        substr(json_build_object('taskId', c.task_id, 'uuid', c.uuid, 'reportTime', api_time(c.report_time),
            'resources', c.sizes, 'metadata', c.metadata, 'state', 'STATE_' || c.state,
            'training', json_build_object('trialId', c.trial_id, 'experimentId', c.experiment_id,
                'experimentConfig', e.config_json, 'hparams', t.hparams,
                'trainingMetrics', CASE WHEN training IS NOT NULL THEN metrics_doc(training, 'training', false) END,
                'validationMetrics', CASE WHEN c.validation IS NOT NULL THEN
                    json_build_object('avgMetrics', c.validation, 'batchMetrics', '[]'::json) END,
                'searcherMetric', number_of(c.validation->e.searcher_metric)))::text, 2)
        FROM (SELECT 1) one LEFT JOIN trials t ON t.id = c.trial_id LEFT JOIN experiments e ON e.id = c.experiment_id);
END $$;
