-- Templates.

-- A template as the API has it.
CREATE OR REPLACE FUNCTION template_doc(t templates) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('name', t.name, 'config', t.config, 'workspaceId', t.workspace_id)
$$;
