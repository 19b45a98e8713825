-- Where a new experiment goes, and what it comes from: project $1, or $3 of workspace $2 by name, or the first; parent
-- $4; a checkpoint to begin with, the newest of trial $5 or $6 itself; $7 its owner. One row; null: no such thing.
WITH p AS (
    SELECT p.id, p.archived OR w.archived archived, p.name, p.user_id, w.id workspace_id, w.name workspace
    FROM projects p JOIN workspaces w ON w.id = p.workspace_id
    WHERE CASE WHEN $1::bigint > 0 THEN p.id = $1::bigint
               WHEN $2::text IS NOT NULL THEN w.name = $2 AND p.name = $3
               ELSE p.id = 1 END
)
SELECT (SELECT id FROM p), (SELECT archived FROM p),
       (SELECT archived FROM experiments WHERE id = $4::bigint),
       (SELECT uuid FROM checkpoints
        WHERE state = 'COMPLETED' AND (trial_id = nullif($5::bigint, 0) OR ($5::bigint = 0 AND uuid = $6))
        ORDER BY steps DESC, report_time DESC LIMIT 1),
       (SELECT jsonb_build_object(
            'displayName', u.display_name, 'userId', u.id, 'username', u.username,
            'projectId', p.id, 'projectName', p.name,
            'workspaceId', p.workspace_id, 'workspaceName', p.workspace,
            'parentArchived', p.archived, 'projectOwnerId', p.user_id)
        FROM p, users u WHERE u.id = $7::bigint)
