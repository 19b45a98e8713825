-- $1 the workspace, which goes if nothing is in it: whether it is gone, whether it is the first, which stays, and how many
-- projects, models and templates are in it. Roles in it go with it; views that were shown in it are their owners' alone.
WITH old AS (
    SELECT w.id, (SELECT count(*) FROM projects p WHERE p.workspace_id = w.id) projects,
           (SELECT count(*) FROM models m WHERE m.workspace_id = w.id) models,
           (SELECT count(*) FROM templates t WHERE t.workspace_id = w.id) templates
    FROM workspaces w WHERE w.id = $1::bigint FOR UPDATE
), gone AS (
    DELETE FROM workspaces w USING old
    WHERE w.id = old.id AND old.id <> 1 AND old.projects + old.models + old.templates = 0
    RETURNING w.id
), hidden AS (
    UPDATE page_views v SET workspace_id = NULL FROM gone WHERE v.workspace_id = gone.id
)
SELECT EXISTS (SELECT FROM gone), id = 1, projects, models, templates FROM old
