-- Groups of users.

-- group.v1.GroupDetails.
CREATE OR REPLACE FUNCTION group_doc(g groups) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('groupId', g.id, 'name', g.name, 'users', coalesce((SELECT jsonb_agg(user_doc(u) ORDER BY u.id)
        FROM group_members m JOIN users u ON u.id = m.user_id WHERE m.group_id = g.id), '[]'))
$$;

-- A new group (p_id null) or a change of one; p_add and p_remove are lists of users' ids. Null: there is no such group.
CREATE OR REPLACE FUNCTION group_edit(p_id integer, p_name text, p_add jsonb, p_remove jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    g groups;
BEGIN
    IF p_id IS NULL THEN
        INSERT INTO groups (name) VALUES (p_name) RETURNING * INTO g;
    ELSE
        UPDATE groups x SET name = coalesce(p_name, x.name) WHERE x.id = p_id RETURNING * INTO g;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    INSERT INTO group_members SELECT g.id, v::integer FROM jsonb_array_elements_text(p_add) v ON CONFLICT DO NOTHING;
    DELETE FROM group_members m WHERE m.group_id = g.id
        AND m.user_id IN (SELECT v::integer FROM jsonb_array_elements_text(p_remove) v);
    RETURN jsonb_build_object('group', group_doc(g));
END $$;
