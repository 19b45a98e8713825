-- A function with settings of its own sets and takes back each at every call, which takes longer than to look up a row.
-- Those that only reads call need none: reading sessions have them.
ALTER FUNCTION checkpoint_doc RESET ALL;
ALTER FUNCTION best_checkpoint_doc RESET ALL;
ALTER FUNCTION task_doc RESET ALL;
ALTER FUNCTION series_items RESET ALL;
ALTER FUNCTION keep_validation RESET ALL; -- its statements look at one row each

CREATE FUNCTION training_at(p_trial integer, p_steps integer) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT m.metrics->'avg_metrics' FROM metrics m WHERE m.trial_id = p_trial AND m.grp = 'training'
            AND m.steps = p_steps AND NOT m.archived ORDER BY m.id DESC LIMIT 1);
END $$;

-- How many live reports a group has: counted by its chunks where it has many.
CREATE FUNCTION live_reports(h metric_heads) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF h.closed > 1000 THEN
        RETURN (SELECT coalesce(sum(c.n), 0) FROM chunk_cover(h.trial_id, h.grp, h.closed) c) + h.tail;
    END IF;
    RETURN (SELECT count(*) FROM metrics m WHERE m.trial_id = h.trial_id AND m.grp = h.grp)
         - (SELECT count(*) FROM metrics m WHERE m.trial_id = h.trial_id AND m.grp = h.grp AND m.archived);
END $$;

-- As in 0012, of what is counted already.
DROP INDEX experiments_project;
CREATE INDEX experiments_project ON experiments (project_id, start_time);
CREATE OR REPLACE FUNCTION workspace_doc(w workspaces) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', w.id, 'name', w.name, 'archived', w.archived, 'username', u.username,
        'immutable', w.id = 1, 'numProjects', (SELECT count(*) FROM projects p WHERE p.workspace_id = w.id),
        'pinned', false, 'userId', w.user_id,
        'numExperiments', (SELECT coalesce(sum(c.n), 0)::bigint FROM projects p JOIN experiment_counts c ON c.project_id = p.id
                           WHERE p.workspace_id = w.id),
        'state', 'WORKSPACE_STATE_UNSPECIFIED', 'errorMessage', '', 'defaultComputePool', '', 'defaultAuxPool', '')
    FROM users u WHERE u.id = w.user_id
$$;
CREATE OR REPLACE FUNCTION project_doc(p projects) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', p.id, 'name', p.name, 'workspaceId', p.workspace_id, 'description', p.description,
        'lastExperimentStartedAt', (SELECT api_time(max(e.start_time)) FROM experiments e WHERE e.project_id = p.id),
        'notes', '[]'::jsonb, 'numExperiments', n.all_of_it,
        'numActiveExperiments', n.active,
        'archived', p.archived OR w.archived, 'username', u.username, 'immutable', p.id = 1, 'userId', p.user_id,
        'workspaceName', w.name, 'state', 'WORKSPACE_STATE_UNSPECIFIED', 'errorMessage', '')
    FROM users u, workspaces w, (SELECT coalesce(sum(c.n), 0)::bigint all_of_it,
                                        coalesce(sum(c.n) FILTER (WHERE c.state = 'ACTIVE'), 0)::bigint active
                                 FROM experiment_counts c WHERE c.project_id = p.id) n
    WHERE u.id = p.user_id AND w.id = p.workspace_id
$$;
