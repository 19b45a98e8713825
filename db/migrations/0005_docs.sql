-- Rows as the API's messages. `state` of experiments and trials is left out: the master puts it in front,
-- since an ACTIVE one is shown as what its allocations do.

CREATE FUNCTION seconds_between(a timestamptz, b timestamptz) RETURNS double precision
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT extract(epoch FROM b - a)::float8 $$;

CREATE FUNCTION checkpoint_resources(r jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce(jsonb_object_agg(key, value #>> '{}'), '{}') FROM jsonb_each(r)
$$;

-- common.v1.Metrics of a stored report.
CREATE FUNCTION metrics_doc(m jsonb, g text, with_batches boolean) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT jsonb_build_object('avgMetrics', coalesce(m->metrics_key(g), '{}'),
        'batchMetrics', CASE WHEN with_batches AND jsonb_typeof(m->'batch_metrics') = 'array'
                             THEN m->'batch_metrics' ELSE '[]' END)
$$;
CREATE FUNCTION metrics_workload(x metrics, with_batches boolean) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('endTime', api_time(x.end_time), 'metrics', metrics_doc(x.metrics, x.grp, with_batches),
        'numInputs', 0, 'totalBatches', x.steps)
$$;
CREATE FUNCTION checkpoint_workload(c checkpoints) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('uuid', c.uuid, 'endTime', api_time(c.report_time), 'state', 'STATE_' || c.state,
        'resources', checkpoint_resources(c.resources), 'totalBatches', c.steps, 'metadata', c.metadata)
$$;

-- The searcher's metric of a trial's validation at these steps, and the same so that less is better.
CREATE FUNCTION value_at(p_trial integer, p_steps integer) RETURNS double precision LANGUAGE sql STABLE AS $$
    SELECT searcher_value(m.metrics, e.searcher_metric) FROM metrics m JOIN trials t ON t.id = m.trial_id
    JOIN experiments e ON e.id = t.experiment_id
    WHERE m.trial_id = p_trial AND m.steps = p_steps AND m.grp = 'validation' AND NOT m.archived
    ORDER BY m.id DESC LIMIT 1
$$;
CREATE FUNCTION signed_at(p_trial integer, p_steps integer, smaller boolean) RETURNS double precision LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN smaller THEN 1 ELSE -1 END * value_at(p_trial, p_steps)
$$;

CREATE FUNCTION best_checkpoint_doc(p_trial integer) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT checkpoint_workload(c) FROM checkpoints c JOIN experiments e ON e.id = c.experiment_id
    WHERE c.trial_id = p_trial AND c.state = 'COMPLETED' AND value_at(c.trial_id, c.steps) IS NOT NULL
    ORDER BY signed_at(c.trial_id, c.steps, e.smaller_is_better), c.steps LIMIT 1
$$;

-- trial.v1.Trial without its state.
CREATE FUNCTION trial_doc(p_id integer) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', t.id, 'experimentId', t.experiment_id, 'startTime', api_time(t.start_time),
        'endTime', api_time(t.end_time),
        'restarts', least(t.restarts, coalesce((e.config->>'max_restarts')::integer, t.restarts)),
        'hparams', t.hparams, 'totalBatchesProcessed', t.total_batches,
        'bestValidation', (SELECT metrics_workload(m, false) FROM metrics m WHERE m.id = t.best_validation_id),
        'latestValidation', (SELECT metrics_workload(m, false) FROM metrics m WHERE m.id = t.latest_validation_id),
        'bestCheckpoint', best_checkpoint_doc(t.id),
        'runnerState', t.runner_state,
        'wallClockTime', (SELECT coalesce(sum(seconds_between(a.start_time, coalesce(a.end_time, now()))), 0)
                          FROM allocations a WHERE a.trial_id = t.id),
        'warmStartCheckpointUuid', coalesce(t.warm_start_checkpoint, ''), 'taskId', t.task_id,
        'totalCheckpointSize', k.bytes::text, 'checkpointCount', k.n,
        'summaryMetrics', t.summary_metrics, 'taskIds', jsonb_build_array(t.task_id),
        'searcherMetricValue', t.searcher_metric_value)
    FROM trials t JOIN experiments e ON e.id = t.experiment_id
    CROSS JOIN LATERAL (SELECT count(*) n, coalesce(sum(c.bytes), 0) bytes FROM checkpoints c
                        WHERE c.trial_id = t.id AND c.state IN ('COMPLETED', 'PARTIALLY_DELETED')) k
    WHERE t.id = p_id
$$;

-- experiment.v1.Experiment without its state. in_list: as an entry of a list.
CREATE FUNCTION experiment_doc(p_id integer, in_list boolean) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', e.id, 'description', e.description, 'labels', e.labels,
        'startTime', api_time(e.start_time), 'endTime', api_time(e.end_time), 'archived', e.archived,
        'numTrials', n.trials, 'trialIds', CASE WHEN in_list THEN '[]' ELSE n.ids END,
        'displayName', u.display_name, 'userId', u.id, 'username', u.username, 'resourcePool', e.resource_pool,
        'searcherType', coalesce(e.config#>>'{searcher,name}', ''), 'searcherMetric', e.searcher_metric,
        'name', e.name, 'notes', CASE WHEN in_list AND e.notes <> '' THEN 'omitted' ELSE e.notes END,
        'jobId', e.job_id, 'forkedFrom', e.parent_id, 'progress', e.progress)
      || jsonb_build_object('projectId', p.id, 'projectName', p.name, 'workspaceId', w.id, 'workspaceName', w.name,
        'parentArchived', p.archived OR w.archived, 'config', e.config, 'originalConfig', e.original_config,
        'projectOwnerId', p.user_id, 'checkpointSize', k.bytes::text, 'checkpointCount', k.n,
        'unmanaged', e.unmanaged, 'modelDefinitionSize', octet_length(e.model_def))
      || CASE WHEN e.best_metric IS NULL THEN '{}'
              ELSE jsonb_build_object('bestTrialSearcherMetric', e.best_metric, 'bestTrialId', e.best_trial_id) END
      || CASE WHEN e.end_time IS NULL THEN '{}'
              ELSE jsonb_build_object('duration', seconds_between(e.start_time, e.end_time)::integer) END
    FROM experiments e JOIN users u ON u.id = e.owner_id JOIN projects p ON p.id = e.project_id
    JOIN workspaces w ON w.id = p.workspace_id
    CROSS JOIN LATERAL (SELECT count(*) trials, coalesce(jsonb_agg(t.id ORDER BY t.id), '[]') ids
                        FROM trials t WHERE t.experiment_id = e.id) n
    CROSS JOIN LATERAL (SELECT count(*) n, coalesce(sum(c.bytes), 0) bytes FROM checkpoints c
                        WHERE c.experiment_id = e.id AND c.state IN ('COMPLETED', 'PARTIALLY_DELETED')) k
    WHERE e.id = p_id
$$;

-- checkpoint.v1.Checkpoint.
CREATE FUNCTION checkpoint_doc(p_uuid text) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('taskId', c.task_id, 'uuid', c.uuid, 'reportTime', api_time(c.report_time),
        'resources', checkpoint_resources(c.resources), 'metadata', c.metadata, 'state', 'STATE_' || c.state,
        'training', jsonb_build_object('trialId', c.trial_id, 'experimentId', c.experiment_id,
            'experimentConfig', e.config, 'hparams', t.hparams,
            'trainingMetrics', (SELECT metrics_doc(m.metrics, m.grp, false) FROM metrics m
                WHERE m.trial_id = c.trial_id AND m.steps = c.steps AND m.grp = 'training' AND NOT m.archived
                ORDER BY m.id DESC LIMIT 1),
            'validationMetrics', (SELECT metrics_doc(m.metrics, m.grp, false) FROM metrics m
                WHERE m.trial_id = c.trial_id AND m.steps = c.steps AND m.grp = 'validation' AND NOT m.archived
                ORDER BY m.id DESC LIMIT 1),
            'searcherMetric', value_at(c.trial_id, c.steps)))
      || CASE WHEN c.allocation_id IS NULL THEN '{}' ELSE jsonb_build_object('allocationId', c.allocation_id) END
    FROM checkpoints c LEFT JOIN trials t ON t.id = c.trial_id LEFT JOIN experiments e ON e.id = c.experiment_id
    WHERE c.uuid = p_uuid
$$;

CREATE FUNCTION log_level_name(l integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce((ARRAY['TRACE', 'DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'])[l], 'UNSPECIFIED')
$$;
-- TaskLogsResponse, or TrialLogsResponse when p_trial is given.
CREATE FUNCTION log_doc(l task_logs, p_trial integer) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', l.id::text, 'timestamp', x.at, 'level', 'LOG_LEVEL_' || x.level, 'log', x.text,
            'message', '[' || x.at || '] ' || rpad(left(coalesce(l.container_id, ''), 8), 8)
                || coalesce(' [rank=' || l.rank_id || ']', '') || ' || '
                || CASE WHEN x.level = 'UNSPECIFIED' THEN '' ELSE x.level || ': ' END || x.text)
        || jsonb_strip_nulls(jsonb_build_object('agentId', l.agent_id, 'containerId', l.container_id,
            'rankId', l.rank_id, 'source', l.source, 'stdtype', l.stdtype, 'trialId', p_trial,
            'taskId', CASE WHEN p_trial IS NULL THEN l.task_id END,
            'allocationId', CASE WHEN p_trial IS NULL THEN l.allocation_id END))
    FROM (SELECT api_time(l.time) at, log_level_name(l.level) level,
                 CASE WHEN right(l.log, 1) = E'\n' THEN l.log ELSE l.log || E'\n' END text) x
$$;

CREATE FUNCTION alloc_state_name(s text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 'STATE_' || CASE WHEN s IN ('PENDING', 'ASSIGNED') THEN 'QUEUED' ELSE s END
$$;
-- task.v1.Allocation.
CREATE FUNCTION allocation_doc(a allocations) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('taskId', a.task_id, 'state', alloc_state_name(a.state), 'isReady', a.is_ready,
            'startTime', api_time(a.start_time), 'allocationId', a.id, 'slots', a.slots)
        || jsonb_strip_nulls(jsonb_build_object('endTime', api_time(a.end_time), 'exitReason', a.exit_reason,
            'statusCode', a.status_code))
$$;
-- task.v1.Task; null when there is no such task.
CREATE FUNCTION task_doc(p_task text) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT CASE WHEN count(x.id) > 0 THEN jsonb_build_object('taskId', p_task,
            'taskType', 'TASK_TYPE_' || max(x.kind), 'startTime', api_time(min(x.start_time)),
            'allocations', coalesce(jsonb_agg(allocation_doc(a) ORDER BY a.start_time DESC, a.run_id DESC)
                                    FILTER (WHERE a.id IS NOT NULL), '[]'))
        || CASE WHEN bool_and(x.end_time IS NOT NULL) THEN jsonb_build_object('endTime', api_time(max(x.end_time)))
                ELSE '{}' END END
    FROM (SELECT id, kind, start_time, end_time FROM allocations WHERE task_id = p_task
          UNION ALL SELECT task_id, 'TRIAL', start_time, end_time FROM trials WHERE task_id = p_task) x
    LEFT JOIN allocations a ON a.id = x.id
$$;

-- offset and limit of the SQL lists: a negative offset counts from the end, limit 0 = 100, -1 = all, -2 = none.
CREATE FUNCTION page_start(total bigint, p_offset bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_offset < 0 THEN greatest(total + p_offset, 0) ELSE least(p_offset, total) END
$$;
CREATE FUNCTION page_size(p_limit bigint, p_default bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE p_limit WHEN 0 THEN p_default WHEN -1 THEN NULL WHEN -2 THEN 0 ELSE greatest(p_limit, 0) END
$$;
