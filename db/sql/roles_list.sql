-- Who has which role where: role $1, user $2 (by groups too), group $3; 0: any.
SELECT role_id, user_id, group_id, workspace_id FROM role_assignments
WHERE ($1::bigint = 0 OR role_id = $1::bigint)
  AND ($2::bigint = 0 OR user_id = $2::bigint
       OR group_id IN (SELECT m.group_id FROM group_members m WHERE m.user_id = $2::bigint))
  AND ($3::bigint = 0 OR group_id = $3::bigint)
ORDER BY role_id, workspace_id NULLS FIRST, group_id, user_id
