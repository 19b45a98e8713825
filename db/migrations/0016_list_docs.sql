-- Documents of lists, built for the rows of a page by one statement: beginning a plan for every row costs more than
-- running it.

-- Not IMMUTABLE, as to_char() is not: only so it is expanded where it is called.
CREATE OR REPLACE FUNCTION api_time(t timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;
CREATE OR REPLACE FUNCTION checkpoint_resources(r jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN (SELECT coalesce(jsonb_object_agg(key, value #>> '{}'), '{}') FROM jsonb_each(r));
END $$;

-- experiment.v1.Experiment without its state, as an entry of a list: JSON text, which costs half of jsonb to make.
CREATE FUNCTION experiment_docs(p_ids integer[]) RETURNS TABLE (doc_id integer, doc text) LANGUAGE plpgsql STABLE
    SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN QUERY SELECT e.id, left(json_build_object('id', e.id, 'description', e.description, 'labels', e.labels,
        'startTime', api_time(e.start_time), 'endTime', api_time(e.end_time), 'archived', e.archived,
        'numTrials', n.trials, 'trialIds', '[]'::json, 'displayName', u.display_name, 'userId', u.id,
        'username', u.username, 'resourcePool', e.resource_pool,
        'searcherType', coalesce(e.config#>>'{searcher,name}', ''), 'searcherMetric', e.searcher_metric,
        'name', e.name, 'notes', CASE WHEN e.notes <> '' THEN 'omitted' ELSE e.notes END, 'jobId', e.job_id,
        'forkedFrom', e.parent_id, 'progress', e.progress, 'projectId', p.id, 'projectName', p.name,
        'workspaceId', w.id, 'workspaceName', w.name, 'parentArchived', p.archived OR w.archived, 'config', e.config,
        'originalConfig', e.original_config, 'projectOwnerId', p.user_id, 'checkpointSize', k.bytes::text,
        'checkpointCount', k.n, 'unmanaged', e.unmanaged, 'modelDefinitionSize', octet_length(e.model_def))::text, -1)
      || CASE WHEN e.best_metric IS NULL THEN ''
              ELSE ', "bestTrialSearcherMetric" : ' || to_json(e.best_metric)::text
                || coalesce(', "bestTrialId" : ' || e.best_trial_id, ', "bestTrialId" : null') END
      || CASE WHEN e.end_time IS NULL THEN ''
              ELSE coalesce(', "duration" : ' || seconds_between(e.start_time, e.end_time)::integer, '') END || '}'
    FROM unnest(p_ids) x(id) JOIN experiments e ON e.id = x.id JOIN users u ON u.id = e.owner_id
    JOIN projects p ON p.id = e.project_id JOIN workspaces w ON w.id = p.workspace_id
    CROSS JOIN LATERAL (SELECT count(*) trials FROM trials t WHERE t.experiment_id = e.id) n
    CROSS JOIN LATERAL (SELECT count(*) n, coalesce(sum(c.bytes), 0) bytes FROM checkpoints c
                        WHERE c.experiment_id = e.id AND c.state IN ('COMPLETED', 'PARTIALLY_DELETED')) k;
END $$;

-- checkpoint.v1.Checkpoint. Its metrics are looked up by values that are known when their plan begins, so that one
-- partition is opened and not all.
CREATE OR REPLACE FUNCTION checkpoint_doc(p_uuid text) RETURNS jsonb LANGUAGE plpgsql STABLE
    SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    c checkpoints;
    training jsonb;
    validation jsonb;
BEGIN
    SELECT * INTO c FROM checkpoints x WHERE x.uuid = p_uuid;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT m.metrics INTO training FROM metrics m WHERE m.trial_id = c.trial_id AND m.steps = c.steps
        AND m.grp = 'training' AND NOT m.archived ORDER BY m.id DESC LIMIT 1;
    SELECT m.metrics INTO validation FROM metrics m WHERE m.trial_id = c.trial_id AND m.steps = c.steps
        AND m.grp = 'validation' AND NOT m.archived ORDER BY m.id DESC LIMIT 1;
    RETURN (SELECT jsonb_build_object('taskId', c.task_id, 'uuid', c.uuid, 'reportTime', api_time(c.report_time),
        'resources', checkpoint_resources(c.resources), 'metadata', c.metadata, 'state', 'STATE_' || c.state,
        'training', jsonb_build_object('trialId', c.trial_id, 'experimentId', c.experiment_id,
            'experimentConfig', e.config, 'hparams', t.hparams,
            'trainingMetrics', CASE WHEN training IS NOT NULL THEN metrics_doc(training, 'training', false) END,
            'validationMetrics', CASE WHEN validation IS NOT NULL THEN metrics_doc(validation, 'validation', false) END,
            'searcherMetric', CASE WHEN t.id IS NOT NULL THEN searcher_value(validation, e.searcher_metric) END))
      || CASE WHEN c.allocation_id IS NULL THEN '{}' ELSE jsonb_build_object('allocationId', c.allocation_id) END
    FROM (SELECT 1) one LEFT JOIN trials t ON t.id = c.trial_id LEFT JOIN experiments e ON e.id = c.experiment_id);
END $$;
