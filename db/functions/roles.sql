-- Roles that users and groups have, in a workspace or in the whole cluster.

-- The roles of a user, by himself and by his groups, as a set of bits: in a workspace those of the whole cluster
-- count too.
CREATE OR REPLACE FUNCTION roles_of(p_user integer, p_workspace integer) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce(bit_or(1::bigint << a.role_id), 0) FROM role_assignments a
    WHERE (a.workspace_id IS NULL OR a.workspace_id = p_workspace)
      AND (a.user_id = p_user OR a.group_id IN (SELECT m.group_id FROM group_members m WHERE m.user_id = p_user))
$$;

-- p_list: [{"role", "user" or "group", "workspace" or null}].
CREATE OR REPLACE FUNCTION roles_remove(p_list jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    r record;
BEGIN
    FOR r IN SELECT * FROM jsonb_to_recordset(p_list) x("role" integer, "user" integer, "group" integer, workspace integer) LOOP
        DELETE FROM role_assignments a WHERE a.role_id = r."role" AND a.user_id IS NOT DISTINCT FROM r."user"
            AND a.group_id IS NOT DISTINCT FROM r."group" AND a.workspace_id IS NOT DISTINCT FROM r.workspace;
        IF NOT FOUND THEN
            RAISE no_data_found USING MESSAGE = 'there is no such assignment';
        END IF;
    END LOOP;
END $$;
