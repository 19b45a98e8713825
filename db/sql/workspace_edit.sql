-- $1 the workspace, $2 its new name (null: as it was): it as it is then, whether it is the first, and whether it is
-- archived, either of which keeps its name.
WITH old AS (
    SELECT id, archived FROM workspaces WHERE id = $1::bigint FOR UPDATE
), new AS (
    UPDATE workspaces w SET name = coalesce($2, w.name)
    FROM old
    WHERE w.id = old.id AND old.id <> 1 AND NOT old.archived
    RETURNING jsonb_build_object('workspace', workspace_doc(w)) doc
)
SELECT (SELECT doc FROM new), id = 1, archived FROM old
