-- $1 the project, $2 its new name, $3 what it is for (null: as it was): it as it is then, whether it is the first, and
-- whether it or its workspace is archived, either of which leaves it as it is.
WITH old AS (
    SELECT p.id, p.archived OR w.archived archived
    FROM projects p JOIN workspaces w ON w.id = p.workspace_id
    WHERE p.id = $1::bigint FOR UPDATE OF p
), new AS (
    UPDATE projects p SET name = coalesce($2, p.name), description = coalesce($3, p.description)
    FROM old
    WHERE p.id = old.id AND old.id <> 1 AND NOT old.archived
    RETURNING jsonb_build_object('project', project_doc(p)) doc
)
SELECT (SELECT doc FROM new), id = 1, archived FROM old
