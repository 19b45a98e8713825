-- Users.

-- user.v1.User of the API. In plpgsql, as other documents are: a function in plain SQL that is not written into its
-- caller's plan is parsed and planned at every call, in plpgsql once by each session.
CREATE OR REPLACE FUNCTION user_doc(u users) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object('id', u.id, 'username', u.username, 'admin', u.admin, 'active', u.active,
        'agentUserGroup', (SELECT jsonb_build_object('agentUid', g.uid, 'agentGid', g.gid,
            'agentUser', g.user_name, 'agentGroup', g.group_name) FROM agent_users g WHERE g.user_id = u.id),
        'displayName', u.display_name, 'modifiedAt', api_time(u.modified_at), 'remote', u.remote,
        'lastAuthAt', api_time(u.last_auth_at));
END $$;

-- Creates a user (p_id null) or changes what is not null; no row when there is no such user. A new
-- password, or switching the user off, ends the user's sessions but one. Who gets a first password becomes
-- active with it: that is how `determined` is switched on.
CREATE OR REPLACE FUNCTION user_edit(p_id integer, p_name text, p_display text, p_password text, p_admin boolean,
                          p_active boolean, p_remote boolean, p_set_agent boolean, p_uid integer,
                          p_gid integer, p_user text, p_group text, p_keep_session text)
    RETURNS TABLE (id integer, doc jsonb) LANGUAGE plpgsql AS $$
DECLARE
    u users;
BEGIN
    IF p_id IS NULL THEN
        INSERT INTO users (username, display_name, password, admin, active, remote)
            VALUES (p_name, coalesce(p_display, ''), nullif(p_password, ''), coalesce(p_admin, false),
                    coalesce(p_active, true), coalesce(p_remote, false)) RETURNING * INTO u;
    ELSE
        UPDATE users x SET username = coalesce(p_name, username), display_name = coalesce(p_display, display_name),
            password = CASE WHEN p_password IS NULL THEN password ELSE nullif(p_password, '') END,
            admin = coalesce(p_admin, admin),
            active = coalesce(p_active, active OR (password IS NULL AND p_password <> '')),
            remote = coalesce(p_remote, remote), modified_at = now()
            WHERE x.id = p_id RETURNING * INTO u;
        IF NOT FOUND THEN
            RETURN;
        END IF;
        IF p_password IS NOT NULL OR NOT u.active THEN
            DELETE FROM user_sessions s WHERE s.user_id = p_id AND s.token_sha256 IS DISTINCT FROM p_keep_session;
        END IF;
    END IF;
    IF p_set_agent THEN
        INSERT INTO agent_users (user_id, uid, gid, user_name, group_name)
            VALUES (u.id, p_uid, p_gid, coalesce(p_user, ''), coalesce(p_group, ''))
            ON CONFLICT (user_id) DO UPDATE SET uid = excluded.uid, gid = excluded.gid,
                user_name = excluded.user_name, group_name = excluded.group_name;
    END IF;
    RETURN QUERY SELECT u.id, user_doc(u);
END $$;
