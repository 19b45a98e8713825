-- Workspaces.

-- workspace.v1.Workspace. Of experiments it knows the kept counts.
CREATE OR REPLACE FUNCTION workspace_doc(w workspaces) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT jsonb_build_object('id', w.id, 'name', w.name, 'archived', w.archived, 'username', u.username,
        'immutable', w.id = 1, 'numProjects', (SELECT count(*) FROM projects p WHERE p.workspace_id = w.id),
        'pinned', false, 'userId', w.user_id,
        'numExperiments', (SELECT coalesce(sum(c.n), 0)::bigint FROM projects p JOIN experiment_counts c ON c.project_id = p.id
                           WHERE p.workspace_id = w.id),
        'state', 'WORKSPACE_STATE_UNSPECIFIED', 'errorMessage', '', 'defaultComputePool', '', 'defaultAuxPool', '')
    FROM users u WHERE u.id = w.user_id);
END $$;
