-- Tasks and their allocations.

-- State of task.v1.Allocation.
CREATE OR REPLACE FUNCTION alloc_state_name(s text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT 'STATE_' || CASE WHEN s IN ('PENDING', 'ASSIGNED') THEN 'QUEUED' ELSE s END
$$;

-- task.v1.Allocation.
CREATE OR REPLACE FUNCTION allocation_doc(a allocations) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('taskId', a.task_id, 'state', alloc_state_name(a.state), 'isReady', a.is_ready,
            'startTime', api_time(a.start_time), 'allocationId', a.id, 'slots', a.slots)
        || jsonb_strip_nulls(jsonb_build_object('endTime', api_time(a.end_time), 'exitReason', a.exit_reason,
            'statusCode', a.status_code))
$$;

-- task.v1.Task; null when there is no such task.
CREATE OR REPLACE FUNCTION task_doc(p_task text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$BEGIN RETURN (
    SELECT CASE WHEN count(x.id) > 0 THEN jsonb_build_object('taskId', p_task,
            'taskType', 'TASK_TYPE_' || max(x.kind), 'startTime', api_time(min(x.start_time)),
            'allocations', coalesce(jsonb_agg(allocation_doc(a) ORDER BY a.start_time DESC, a.run_id DESC)
                                    FILTER (WHERE a.id IS NOT NULL), '[]'))
        || CASE WHEN bool_and(x.end_time IS NOT NULL) THEN jsonb_build_object('endTime', api_time(max(x.end_time)))
                ELSE '{}' END END
    FROM (SELECT id, kind, start_time, end_time FROM allocations WHERE task_id = p_task
          UNION ALL SELECT task_id, 'TRIAL', start_time, end_time FROM trials WHERE task_id = p_task) x
    LEFT JOIN allocations a ON a.id = x.id
); END$$;
