-- Checkpoints that lie in a store and have no row.

-- The store is to be looked through; nothing where no experiment has used it.
CREATE OR REPLACE FUNCTION look_through(p_place text) RETURNS TABLE (r_id integer, r_owner integer, r_job text, r_config jsonb)
LANGUAGE plpgsql AS $$
BEGIN
    SELECT e.id, e.owner_id, e.job_id, e.config INTO r_id, r_owner, r_job, r_config FROM experiments e
        WHERE e.state NOT IN ('DELETING', 'DELETED') AND store_place(e.config->'checkpoint_storage') = p_place
        ORDER BY e.id DESC LIMIT 1;
    IF NOT FOUND THEN
        RETURN;
    END IF;
    INSERT INTO store_looks (place, asked_at) VALUES (p_place, now())
        ON CONFLICT (place) DO UPDATE SET asked_at = now(), done_at = NULL;
    DELETE FROM left_behind WHERE place = p_place;
    RETURN NEXT;
END $$;

-- What a task of this experiment found in its store. False: it is not that store.
CREATE OR REPLACE FUNCTION note_left_behind(p_exp integer, p_place text, p_found jsonb, p_done boolean) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM experiments e JOIN store_looks l ON l.place = p_place
        WHERE e.id = p_exp AND store_place(e.config->'checkpoint_storage') = p_place;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO left_behind SELECT x->>'uuid', p_place, (x->>'aside')::boolean, to_timestamp((x->>'modified')::bigint),
            (x->>'uid')::bigint, x->>'taskId', x->'metadata', x->'resources',
            (SELECT coalesce(sum(v.value::bigint), 0) FROM jsonb_each_text(x->'resources') v)
        FROM jsonb_array_elements(p_found) x
        ON CONFLICT (uuid) DO UPDATE SET place = excluded.place, is_aside = excluded.is_aside, modified = excluded.modified,
            uid = excluded.uid, task_id = excluded.task_id, metadata = excluded.metadata,
            resources = excluded.resources, bytes = excluded.bytes;
    IF p_done THEN
        UPDATE store_looks SET done_at = now() WHERE place = p_place;
    END IF;
    RETURN true;
END $$;

-- The trial of this very task: its id is given out once, in all lives. 0: none.
CREATE OR REPLACE FUNCTION writer_of(b left_behind) RETURNS integer LANGUAGE sql STABLE AS $$
    SELECT coalesce((SELECT id FROM trials WHERE task_id = b.task_id AND b.task_id <> ''), 0)
$$;

-- The list, as the API gives it; one whose row came meanwhile is not left behind.
CREATE OR REPLACE FUNCTION left_behind_doc(p_place text) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('place', l.place, 'askedAt', api_time(l.asked_at), 'doneAt', api_time(l.done_at), 'checkpoints',
        (SELECT coalesce(jsonb_agg(x.doc ORDER BY x.modified, x.uuid), '[]') FROM (
            SELECT b.uuid, b.modified, jsonb_build_object('uuid', b.uuid, 'aside', b.is_aside, 'modified', api_time(b.modified),
                'uid', b.uid, 'taskId', b.task_id, 'trialId', nullif(writer_of(b), 0), 'metadata', b.metadata,
                'bytes', b.bytes::text) doc
            FROM left_behind b WHERE b.place = l.place AND NOT EXISTS (SELECT 1 FROM checkpoints c WHERE c.uuid = b.uuid)
            ORDER BY b.modified, b.uuid LIMIT 10000) x))
    FROM store_looks l WHERE l.place = p_place
$$;

-- Gives one a row, of a trial that has ended: a live one might be taken to have trained so far. With p_remove it is
-- on its way out from the first moment, and any trial does. Returns ''. else why not.
CREATE OR REPLACE FUNCTION adopt_left_behind(p_uuid text, p_trial integer, p_remove boolean, p_rest_s bigint)
RETURNS TABLE (r_why text, r_exp integer) LANGUAGE plpgsql AS $$
DECLARE
    b left_behind;
    t record;
    steps numeric;
BEGIN
    r_exp := 0;
    SELECT * INTO b FROM left_behind WHERE uuid = p_uuid FOR UPDATE;
    SELECT x.id, x.experiment_id, x.run_id, x.task_id, x.state, store_place(e.config->'checkpoint_storage') AS place INTO t
        FROM trials x JOIN experiments e ON e.id = x.experiment_id
        WHERE x.id = CASE WHEN p_trial > 0 THEN p_trial ELSE writer_of(b) END FOR UPDATE OF x;
    r_why := CASE
        WHEN b.uuid IS NULL OR EXISTS (SELECT 1 FROM checkpoints c WHERE c.uuid = p_uuid)
            THEN 'it is not among those that were left behind; det checkpoint unknown PLACE looks for them'
        WHEN t.id IS NULL AND p_trial > 0 THEN format('trial %s not found', p_trial)
        WHEN t.id IS NULL THEN 'no trial of this database has written it; say whose it shall be'
        WHEN t.place IS DISTINCT FROM b.place
            THEN format('it lies in %s, and the checkpoints of trial %s in %s', b.place, t.id, t.place)
        WHEN NOT p_remove AND trial_is_live(t.state)
            THEN format('trial %s is %s; kill its experiment first, and det experiment continue it afterwards', t.id, t.state)
        ELSE '' END;
    IF r_why <> '' THEN
        RETURN NEXT;
        RETURN;
    END IF;
    steps := CASE WHEN jsonb_typeof(b.metadata->'steps_completed') = 'number' THEN (b.metadata->>'steps_completed')::numeric
                  ELSE 0 END;
    INSERT INTO checkpoints (uuid, experiment_id, trial_id, task_id, run_id, state, steps, report_time, metadata, resources,
                             bytes, kept, gc_step, gc_until, gc_rest_s, gc_resources, gc_next)
        VALUES (b.uuid, t.experiment_id, t.id, t.task_id, t.run_id, CASE WHEN b.is_aside THEN 'DELETED' ELSE 'COMPLETED' END,
                CASE WHEN steps BETWEEN 0 AND 2147483647 THEN floor(steps) ELSE 0 END, b.modified, b.metadata,
                CASE WHEN b.is_aside THEN '{}' ELSE b.resources END, CASE WHEN b.is_aside THEN 0 ELSE b.bytes END,
                NOT p_remove, CASE WHEN b.is_aside THEN 'rest' WHEN p_remove THEN 'remove' END,
                CASE WHEN b.is_aside THEN now() + CASE WHEN p_remove THEN 0 ELSE p_rest_s END * interval '1 second' END,
                p_rest_s, b.resources, now());
    DELETE FROM left_behind WHERE uuid = p_uuid;
    r_exp := t.experiment_id;
    RETURN NEXT;
END $$;
