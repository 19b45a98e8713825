-- Models and their versions.

-- The model that a path names: by its id where that is a number, which no name is; else by its name. Null: none.
CREATE OR REPLACE FUNCTION model_at(p_key text) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF p_key ~ '^[0-9]{1,18}$' THEN
        RETURN (SELECT m.id FROM models m WHERE m.id = p_key::bigint);
    END IF;
    RETURN (SELECT m.id FROM models m WHERE lower(m.name) = lower(p_key));
END $$;

-- model.v1.Model.
CREATE OR REPLACE FUNCTION model_doc(m models) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT json_build_object('id', m.id, 'name', m.name, 'description', m.description, 'notes', m.notes, 'labels', m.labels,
        'metadata', m.metadata, 'creationTime', api_time(m.created_at), 'lastUpdatedTime', api_time(m.updated_at),
        'numVersions', (SELECT count(*) FROM model_versions v WHERE v.model_id = m.id), 'username', u.username,
        'userId', m.user_id, 'workspaceId', m.workspace_id, 'archived', m.archived)
    FROM users u WHERE u.id = m.user_id);
END $$;

-- The same in each entry of a list of versions, which may be long: without what people wrote.
CREATE OR REPLACE FUNCTION model_brief(m models) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT json_build_object('id', m.id, 'name', m.name, 'metadata', '{}'::json, 'creationTime', api_time(m.created_at),
        'lastUpdatedTime', api_time(m.updated_at),
        'numVersions', (SELECT count(*) FROM model_versions v WHERE v.model_id = m.id), 'username', u.username,
        'userId', m.user_id, 'workspaceId', m.workspace_id, 'archived', m.archived)
    FROM users u WHERE u.id = m.user_id);
END $$;

-- model.v1.ModelVersion of the model as p_model has it.
CREATE OR REPLACE FUNCTION model_version_doc(v model_versions, p_model json) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT json_build_object('model', p_model, 'checkpoint', checkpoint_doc(v.checkpoint_uuid), 'version', v.version,
        'id', v.id, 'name', v.name, 'comment', v.comment, 'notes', v.notes, 'labels', v.labels, 'metadata', v.metadata,
        'creationTime', api_time(v.created_at), 'lastUpdatedTime', api_time(v.updated_at), 'username', u.username,
        'userId', v.user_id)
    FROM users u WHERE u.id = v.user_id);
END $$;

-- Which versions a checkpoint is, in words: 'version 2 of model "digits"'. Null: none.
CREATE OR REPLACE FUNCTION checkpoint_models(p_uuid text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT string_agg(format('version %s of model "%s"', v.version, m.name), ', ' ORDER BY v.id)
    FROM model_versions v JOIN models m ON m.id = v.model_id WHERE v.checkpoint_uuid = p_uuid
$$;

-- A new version. r_why: enum db_version_why in db/people/db_models.h; r_doc where it is 0, else r_state may say more.
-- The checkpoint's row is locked as gc_intend() locks it: what is on its way out gets no version.
CREATE OR REPLACE FUNCTION model_register(p_key text, p_uuid text, p_user integer, p_name text, p_comment text, p_notes text,
    p_labels jsonb, p_metadata json) RETURNS TABLE (r_why integer, r_state text, r_doc json) LANGUAGE plpgsql AS $$
DECLARE
    m models;
    c checkpoints;
    v model_versions;
BEGIN
    SELECT * INTO m FROM models x WHERE x.id = model_at(p_key) FOR UPDATE;
    SELECT * INTO c FROM checkpoints x WHERE x.uuid = p_uuid FOR UPDATE;
    IF m.id IS NULL THEN
        RETURN QUERY SELECT 1, NULL::text, NULL::json;
    ELSIF m.archived THEN
        RETURN QUERY SELECT 2, NULL::text, NULL::json;
    ELSIF c.uuid IS NULL THEN
        RETURN QUERY SELECT 3, NULL::text, NULL::json;
    ELSIF c.state <> 'COMPLETED' THEN
        RETURN QUERY SELECT 4, c.state, NULL::json;
    ELSIF c.gc_step IS NOT NULL OR EXISTS (SELECT FROM experiments e WHERE e.id = c.experiment_id
                                           AND e.state IN ('DELETING', 'DELETED', 'DELETE_FAILED')) THEN
        RETURN QUERY SELECT 5, NULL::text, NULL::json;
    ELSE
        UPDATE models x SET last_version = x.last_version + 1, updated_at = now() WHERE x.id = m.id RETURNING * INTO m;
        INSERT INTO model_versions (model_id, version, checkpoint_uuid, user_id, name, comment, notes, labels, metadata)
            VALUES (m.id, m.last_version, p_uuid, p_user, p_name, p_comment, p_notes, p_labels, p_metadata)
            RETURNING * INTO v;
        RETURN QUERY SELECT 0, NULL::text, json_build_object('modelVersion', model_version_doc(v, model_doc(m)));
    END IF;
END $$;
