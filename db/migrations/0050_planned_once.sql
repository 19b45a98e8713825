-- Answers that PostgreSQL planned anew at every look, and live trials' summaries in one go.

-- A function in plain SQL that is not written into its caller's plan is parsed and planned at every call. In plpgsql a
-- session plans it once. What these answer is what they answered.
CREATE OR REPLACE FUNCTION user_doc(u users) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object('id', u.id, 'username', u.username, 'admin', u.admin, 'active', u.active,
        'agentUserGroup', (SELECT jsonb_build_object('agentUid', g.uid, 'agentGid', g.gid,
            'agentUser', g.user_name, 'agentGroup', g.group_name) FROM agent_users g WHERE g.user_id = u.id),
        'displayName', u.display_name, 'modifiedAt', api_time(u.modified_at), 'remote', u.remote,
        'lastAuthAt', api_time(u.last_auth_at));
END $$;
CREATE OR REPLACE FUNCTION workspace_doc(w workspaces) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT jsonb_build_object('id', w.id, 'name', w.name, 'archived', w.archived, 'username', u.username,
        'immutable', w.id = 1, 'numProjects', (SELECT count(*) FROM projects p WHERE p.workspace_id = w.id),
        'pinned', false, 'userId', w.user_id,
        'numExperiments', (SELECT coalesce(sum(c.n), 0)::bigint FROM projects p JOIN experiment_counts c ON c.project_id = p.id
                           WHERE p.workspace_id = w.id),
        'state', 'WORKSPACE_STATE_UNSPECIFIED', 'errorMessage', '', 'defaultComputePool', '', 'defaultAuxPool', '')
    FROM users u WHERE u.id = w.user_id);
END $$;
CREATE OR REPLACE FUNCTION project_doc(p projects) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT jsonb_build_object('id', p.id, 'name', p.name, 'workspaceId', p.workspace_id, 'description', p.description,
        'lastExperimentStartedAt', (SELECT api_time(max(e.start_time)) FROM experiments e WHERE e.project_id = p.id),
        'notes', '[]'::jsonb, 'numExperiments', n.all_of_it,
        'numActiveExperiments', n.active,
        'archived', p.archived OR w.archived, 'username', u.username, 'immutable', p.id = 1, 'userId', p.user_id,
        'workspaceName', w.name, 'state', 'WORKSPACE_STATE_UNSPECIFIED', 'errorMessage', '')
    FROM users u, workspaces w, (SELECT coalesce(sum(c.n), 0)::bigint all_of_it,
                                        coalesce(sum(c.n) FILTER (WHERE c.state = 'ACTIVE'), 0)::bigint active
                                 FROM experiment_counts c WHERE c.project_id = p.id) n
    WHERE u.id = p.user_id AND w.id = p.workspace_id);
END $$;
CREATE OR REPLACE FUNCTION model_doc(m models) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT json_build_object('id', m.id, 'name', m.name, 'description', m.description, 'notes', m.notes, 'labels', m.labels,
        'metadata', m.metadata, 'creationTime', api_time(m.created_at), 'lastUpdatedTime', api_time(m.updated_at),
        'numVersions', (SELECT count(*) FROM model_versions v WHERE v.model_id = m.id), 'username', u.username,
        'userId', m.user_id, 'workspaceId', m.workspace_id, 'archived', m.archived)
    FROM users u WHERE u.id = m.user_id);
END $$;
CREATE OR REPLACE FUNCTION model_brief(m models) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT json_build_object('id', m.id, 'name', m.name, 'metadata', '{}'::json, 'creationTime', api_time(m.created_at),
        'lastUpdatedTime', api_time(m.updated_at),
        'numVersions', (SELECT count(*) FROM model_versions v WHERE v.model_id = m.id), 'username', u.username,
        'userId', m.user_id, 'workspaceId', m.workspace_id, 'archived', m.archived)
    FROM users u WHERE u.id = m.user_id);
END $$;
CREATE OR REPLACE FUNCTION model_version_doc(v model_versions, p_model json) RETURNS json LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
    SELECT json_build_object('model', p_model, 'checkpoint', checkpoint_doc(v.checkpoint_uuid), 'version', v.version,
        'id', v.id, 'name', v.name, 'comment', v.comment, 'notes', v.notes, 'labels', v.labels, 'metadata', v.metadata,
        'creationTime', api_time(v.created_at), 'lastUpdatedTime', api_time(v.updated_at), 'username', u.username,
        'userId', v.user_id)
    FROM users u WHERE u.id = v.user_id);
END $$;
CREATE OR REPLACE FUNCTION trial_batches(p_trial integer) RETURNS integer LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT greatest(max(steps), 0) FROM metric_heads WHERE trial_id = p_trial);
END $$;
-- Said to be immutable, it was not written into plans: what makes jsonb is only stable.
ALTER FUNCTION metrics_doc STABLE;
-- As in 0026; the configuration is there as text.
CREATE OR REPLACE FUNCTION checkpoint_doc(p_uuid text) RETURNS json LANGUAGE plpgsql STABLE AS $$
DECLARE
    c checkpoints;
    training jsonb;
BEGIN
    SELECT * INTO c FROM checkpoints x WHERE x.uuid = p_uuid;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT m.metrics INTO training FROM metrics m WHERE m.trial_id = c.trial_id AND m.steps = c.steps
        AND m.grp = 'training' AND NOT m.archived ORDER BY m.id DESC LIMIT 1;
    RETURN (SELECT CASE WHEN c.allocation_id IS NULL THEN '{' ELSE '{"allocationId":' || to_json(c.allocation_id) || ',' END ||
        substr(json_build_object('taskId', c.task_id, 'uuid', c.uuid, 'reportTime', api_time(c.report_time),
            'resources', c.sizes, 'metadata', c.metadata, 'state', 'STATE_' || c.state,
            'training', json_build_object('trialId', c.trial_id, 'experimentId', c.experiment_id,
                'experimentConfig', e.config_json, 'hparams', t.hparams,
                'trainingMetrics', CASE WHEN training IS NOT NULL THEN metrics_doc(training, 'training', false) END,
                'validationMetrics', CASE WHEN c.validation IS NOT NULL THEN
                    json_build_object('avgMetrics', c.validation, 'batchMetrics', '[]'::json) END,
                'searcherMetric', number_of(c.validation->e.searcher_metric)))::text, 2)
        FROM (SELECT 1) one LEFT JOIN trials t ON t.id = c.trial_id LEFT JOIN experiments e ON e.id = c.experiment_id);
END $$;

-- A group's summary, kept, with the rows of (p_after, p_upto] that it does not hold yet: what summary_merge_chunk() makes of
-- it with chunk_of_rows(), value for value, without a chunk in between. Of one metric only where p_name is given.
CREATE FUNCTION summary_with_rows(kept jsonb, p_trial integer, p_grp text, p_after integer, p_upto integer, p_name text DEFAULT NULL)
    RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    k text := metrics_key(p_grp);
BEGIN
    RETURN (
    SELECT coalesce(kept, '{}') || coalesce(jsonb_object_agg(x.key, CASE
        WHEN x.numbers = x.rows AND coalesce(x.old->>'type', 'number') = 'number' THEN jsonb_build_object('type', 'number',
            'count', x.n, 'min', least(x.low, (x.old->>'min')::float8), 'max', greatest(x.high, (x.old->>'max')::float8),
            'sum', x.total, 'mean', x.total / x.n, 'last', x.last)
        ELSE summary_after(x.old, odd_chunk(x.vals, x.numbers, x.part, x.low, x.high, x.last)) END), '{}')
    FROM (SELECT y.*, kept->y.key old, y.numbers + coalesce((kept->y.key->>'count')::bigint, 0) n,
                 metric_bounded(y.part) + coalesce(metric_bounded((kept->y.key->>'sum')::float8), 0) total,
                 vals[array_position(steps, newest)] last
          FROM (SELECT r.key, count(*) AS rows, count(num) numbers, sum(metric_bounded(num)) part, min(num) low, max(num) high,
                       max(r.steps) newest, array_agg(r.steps) steps, array_agg(r.value) vals
                FROM (SELECT v.key, v.value, m.steps,
                             CASE WHEN jsonb_typeof(v.value) = 'number' THEN v.value::float8 END num
                      FROM metrics m, jsonb_each(CASE WHEN p_name IS NULL THEN m.metrics->k
                          WHEN m.metrics->k ? p_name THEN jsonb_build_object(p_name, m.metrics->k->p_name) END) v
                      WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
                        AND m.steps > p_after AND m.steps <= p_upto OFFSET 0) r -- each number is read once
                GROUP BY r.key) y) x);
END $$;
-- A metric's chunk, as chunk_of_rows() has it, where some of its values are no numbers or its summary is not of numbers.
CREATE FUNCTION odd_chunk(vals jsonb[], numbers bigint, total float8, low float8, high float8, last jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    n bigint := cardinality(vals);
    nans bigint;
    kind text;
    kind2 text;
BEGIN
    SELECT count(*) FILTER (WHERE metric_kind(v) = 'nan'), min(metric_kind(v)), max(metric_kind(v)) INTO nans, kind, kind2
        FROM unnest(vals) v WHERE jsonb_typeof(v) <> 'number';
    IF numbers > 0 AND numbers + nans = n THEN
        RETURN jsonb_build_array(numbers, total, jsonb_build_array(low), jsonb_build_array(high), last);
    END IF;
    RETURN jsonb_build_array(n, CASE WHEN numbers + nans = n THEN 'nan' WHEN numbers = 0 AND kind = kind2 THEN kind
                                     ELSE 'string' END, last);
END $$;
CREATE OR REPLACE FUNCTION trial_summary(p_trial integer, kept jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    h metric_heads;
    key text;
BEGIN
    FOR h IN SELECT * FROM metric_heads WHERE trial_id = p_trial AND tail > 0 LOOP
        key := summary_key(h.grp);
        kept := kept || jsonb_build_object(key, summary_with_rows(kept->key, p_trial, h.grp, h.closed_steps, h.steps));
    END LOOP;
    RETURN kept;
END $$;
-- trial_summary(p_trial, kept)->summary_key(p_grp)->p_name.
CREATE OR REPLACE FUNCTION metric_summary(p_trial integer, kept jsonb, p_grp text, p_name text) RETURNS jsonb
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    h metric_heads;
    key text := summary_key(p_grp);
    s jsonb := kept->key;
BEGIN
    s := CASE WHEN s ? p_name THEN jsonb_build_object(p_name, s->p_name) END;
    FOR h IN SELECT * FROM metric_heads WHERE trial_id = p_trial AND tail > 0 AND summary_key(grp) = key LOOP
        s := summary_with_rows(s, p_trial, h.grp, h.closed_steps, h.steps, p_name);
    END LOOP;
    RETURN s->p_name;
END $$;
