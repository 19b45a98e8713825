-- What webhooks are told, written beside what happened, so that neither is there without the other.

-- One event for each webhook that waits for this state, whatever its triggers are. No row of an experiment is refused
-- because of it: what goes wrong here costs the event, and the server's log says so.
CREATE OR REPLACE FUNCTION tell_webhooks() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    told jsonb;
BEGIN
    IF NOT EXISTS (SELECT FROM webhook_triggers t WHERE t.trigger_type = 'EXPERIMENT_STATE_CHANGE' AND t.condition ->> 'state' = NEW.state) THEN
        RETURN NULL;
    END IF;
    told := jsonb_build_object('event_type', 'EXPERIMENT_STATE_CHANGE',
        'timestamp', extract(epoch FROM clock_timestamp())::bigint, 'condition', jsonb_build_object('state', NEW.state),
        'event_data', jsonb_build_object('experiment', jsonb_build_object('id', NEW.id, 'name', left(NEW.name, 1000), 'state', NEW.state,
            'duration', greatest(0, extract(epoch FROM coalesce(NEW.end_time, clock_timestamp()) - NEW.start_time)::bigint),
            'slots_per_trial', coalesce(nullif(NEW.config #> '{resources,slots_per_trial}', 'null'), '1'), 'resource_pool', NEW.resource_pool,
            'workspace', (SELECT s.name FROM projects p JOIN workspaces s ON s.id = p.workspace_id WHERE p.id = NEW.project_id),
            'project', (SELECT p.name FROM projects p WHERE p.id = NEW.project_id))));
    INSERT INTO webhook_events (webhook_id, payload)
        SELECT DISTINCT ON (t.webhook_id) t.webhook_id, (jsonb_build_object('event_id', gen_random_uuid()) || told)::text
        FROM webhook_triggers t WHERE t.trigger_type = 'EXPERIMENT_STATE_CHANGE' AND t.condition ->> 'state' = NEW.state;
    RETURN NULL;
EXCEPTION WHEN OTHERS THEN
    RAISE WARNING 'experiment % is %, which no webhook is told: %', NEW.id, NEW.state, SQLERRM;
    RETURN NULL;
END $$;
CREATE TRIGGER experiments_told AFTER UPDATE OF state ON experiments FOR EACH ROW
    WHEN (NEW.state IS DISTINCT FROM OLD.state) EXECUTE FUNCTION tell_webhooks();
-- A new one counts as paused before it is written, so one that starts at once is told of as one that is activated later.
CREATE TRIGGER experiments_told_new AFTER INSERT ON experiments FOR EACH ROW
    WHEN (NEW.state <> 'PAUSED') EXECUTE FUNCTION tell_webhooks();

-- A line of a task's log that a trigger is for; once for a task.
CREATE OR REPLACE FUNCTION tell_log_hit(p_trigger integer, p_task text, p_agent text, p_line text) RETURNS void LANGUAGE sql AS $$
    WITH first AS (INSERT INTO webhook_log_hits SELECT t.id, p_task FROM webhook_triggers t WHERE t.id = p_trigger ON CONFLICT DO NOTHING RETURNING trigger_id)
    INSERT INTO webhook_events (webhook_id, payload)
        SELECT t.webhook_id, jsonb_build_object('event_id', gen_random_uuid(), 'event_type', 'TASK_LOG',
            'timestamp', extract(epoch FROM clock_timestamp())::bigint, 'condition', t.condition,
            'event_data', jsonb_build_object('task_log', jsonb_build_object('task_id', p_task, 'node_name', p_agent, 'triggering_log', p_line)))::text
        FROM first f JOIN webhook_triggers t ON t.id = f.trigger_id
$$;

-- What is sent next: of each webhook that is neither paused nor busy its oldest event that is due.
CREATE OR REPLACE FUNCTION due_webhook_events(p_busy integer[]) RETURNS TABLE (id bigint, webhook_id integer, url text, webhook_type text, payload text)
LANGUAGE sql STABLE AS $$
    SELECT e.id, w.id, w.url, w.webhook_type, e.payload FROM webhooks w
        CROSS JOIN LATERAL (SELECT * FROM webhook_events v WHERE v.webhook_id = w.id AND v.due <= now() ORDER BY v.due, v.id LIMIT 1) e
        WHERE w.id <> ALL (p_busy) AND coalesce(w.paused_until, '-infinity') <= now() ORDER BY e.due LIMIT 16
$$;

-- A receiver that did not take an event is left alone for a while, longer each time, five minutes at most; the event's
-- own turn comes later each time, so that one which is never taken holds up no other. After three days it is given up.
-- True: so it was.
CREATE OR REPLACE FUNCTION webhook_failed(p_event bigint, p_webhook integer, p_error text) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE webhooks SET failures = failures + 1, error = p_error,
        paused_until = clock_timestamp() + least(300, power(2, least(failures, 20))) * (0.75 + random() / 2) * interval '1 s' WHERE id = p_webhook;
    UPDATE webhook_events SET attempts = attempts + 1,
        due = clock_timestamp() + least(3600, power(2, least(attempts, 20))) * (0.75 + random() / 2) * interval '1 s' WHERE id = p_event;
    DELETE FROM webhook_events WHERE id = p_event AND created < clock_timestamp() - interval '3 days';
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    UPDATE webhooks SET lost = lost + 1 WHERE id = p_webhook;
    RETURN true;
END $$;

-- Once in a while: of each webhook the newest p_most events stay, and what was told to one that is gone meanwhile goes.
-- Their number: how many were given up. It steps from webhook to webhook in the index, so it costs what is there. What a
-- clock that was ahead has put off, an event that was never sent or for longer than webhook_failed() does, is due now;
-- whoever pauses a webhook by hand does so until infinity.
CREATE OR REPLACE FUNCTION sweep_webhooks(p_most integer) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    w integer;
    n bigint;
    lost bigint := 0;
BEGIN
    UPDATE webhooks SET paused_until = NULL WHERE paused_until > now() + interval '10 minutes' AND paused_until < 'infinity';
    SELECT min(webhook_id) INTO w FROM webhook_events;
    WHILE w IS NOT NULL LOOP
        UPDATE webhook_events SET due = now(), created = least(created, now())
            WHERE webhook_id = w AND due > now() AND (attempts = 0 OR due > now() + interval '2 hours');
        IF NOT EXISTS (SELECT FROM webhooks WHERE id = w) THEN
            DELETE FROM webhook_events WHERE webhook_id = w;
        ELSIF (SELECT count(*) FROM (SELECT FROM webhook_events WHERE webhook_id = w LIMIT p_most + 1) e) > p_most THEN
            DELETE FROM webhook_events WHERE id IN (SELECT id FROM webhook_events WHERE webhook_id = w ORDER BY id DESC OFFSET p_most);
            GET DIAGNOSTICS n = ROW_COUNT;
            UPDATE webhooks SET lost = webhooks.lost + n WHERE id = w;
            lost := lost + n;
        END IF;
        SELECT min(webhook_id) INTO w FROM webhook_events WHERE webhook_id > w;
    END LOOP;
    RETURN lost;
END $$;
