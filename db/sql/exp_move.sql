-- $1 the experiment, $2 the project: what is there of them, and whether it is archived. Nothing moves from or into
-- what is.
WITH e AS (
    SELECT id, archived FROM experiments WHERE id = $1::bigint FOR UPDATE
), p AS (
    SELECT p.id, p.archived OR w.archived archived
    FROM projects p JOIN workspaces w ON w.id = p.workspace_id
    WHERE p.id = $2::bigint
), up AS (
    UPDATE experiments x SET project_id = p.id
    FROM e, p
    WHERE x.id = e.id AND NOT e.archived AND NOT p.archived
)
SELECT EXISTS (SELECT FROM e), coalesce((SELECT archived FROM e), false),
       EXISTS (SELECT FROM p), coalesce((SELECT archived FROM p), false)
