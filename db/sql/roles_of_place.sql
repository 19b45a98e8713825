-- First the workspace $1 itself, with its groups and users whose name has $2 in it; then their roles there.
WITH a AS (
    SELECT a.* FROM role_assignments a
        LEFT JOIN users u ON u.id = a.user_id LEFT JOIN groups g ON g.id = a.group_id
    WHERE a.workspace_id = $1::integer
      AND ($2::text IS NULL OR position(lower($2) IN lower(coalesce(u.username, g.name))) > 0)
)
SELECT 0, NULL::integer, NULL::integer, w.id,
       (SELECT coalesce(jsonb_agg(group_doc(g) ORDER BY g.id), '[]') FROM groups g
        WHERE g.id IN (SELECT group_id FROM a)),
       (SELECT coalesce(jsonb_agg(user_doc(u) ORDER BY u.id), '[]') FROM users u
        WHERE u.id IN (SELECT user_id FROM a))
FROM workspaces w WHERE w.id = $1::integer
UNION ALL
SELECT role_id, user_id, group_id, workspace_id, NULL, NULL FROM a
ORDER BY 1, 3, 2
