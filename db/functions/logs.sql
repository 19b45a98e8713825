-- Logs of tasks.

-- log.v1.LogLevel without its prefix.
CREATE OR REPLACE FUNCTION log_level_name(l integer) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT coalesce((ARRAY['TRACE', 'DEBUG', 'INFO', 'WARNING', 'ERROR', 'CRITICAL'])[l], 'UNSPECIFIED')
$$;

-- TaskLogsResponse, or TrialLogsResponse when p_trial is given.
CREATE OR REPLACE FUNCTION log_doc(l task_logs, p_trial integer) RETURNS jsonb LANGUAGE sql STABLE AS $$
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
