-- Templates, and workspaces and projects as the API's messages.

CREATE TABLE templates (
    name text PRIMARY KEY,
    config jsonb NOT NULL,        -- a part of a configuration: checked and normalised
    workspace_id integer NOT NULL DEFAULT 1 REFERENCES workspaces,
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE UNIQUE INDEX workspaces_name ON workspaces (lower(name));
CREATE UNIQUE INDEX projects_name ON projects (workspace_id, lower(name));

CREATE FUNCTION template_doc(t templates) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('name', t.name, 'config', t.config, 'workspaceId', t.workspace_id)
$$;

-- workspace.v1.Workspace.
CREATE FUNCTION workspace_doc(w workspaces) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', w.id, 'name', w.name, 'archived', w.archived, 'username', u.username,
        'immutable', w.id = 1, 'numProjects', (SELECT count(*) FROM projects p WHERE p.workspace_id = w.id),
        'pinned', false, 'userId', w.user_id,
        'numExperiments', (SELECT count(*) FROM experiments e JOIN projects p ON p.id = e.project_id
                           WHERE p.workspace_id = w.id),
        'state', 'WORKSPACE_STATE_UNSPECIFIED', 'errorMessage', '', 'defaultComputePool', '', 'defaultAuxPool', '')
    FROM users u WHERE u.id = w.user_id
$$;

-- project.v1.Project. Projects of an archived workspace read as archived.
CREATE FUNCTION project_doc(p projects) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', p.id, 'name', p.name, 'workspaceId', p.workspace_id, 'description', p.description,
        'lastExperimentStartedAt', (SELECT api_time(max(e.start_time)) FROM experiments e WHERE e.project_id = p.id),
        'notes', '[]'::jsonb, 'numExperiments', (SELECT count(*) FROM experiments e WHERE e.project_id = p.id),
        'numActiveExperiments', (SELECT count(*) FROM experiments e WHERE e.project_id = p.id AND e.state = 'ACTIVE'),
        'archived', p.archived OR w.archived, 'username', u.username, 'immutable', p.id = 1, 'userId', p.user_id,
        'workspaceName', w.name, 'state', 'WORKSPACE_STATE_UNSPECIFIED', 'errorMessage', '')
    FROM users u, workspaces w WHERE u.id = p.user_id AND w.id = p.workspace_id
$$;
