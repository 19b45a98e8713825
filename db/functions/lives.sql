-- Lives of the cluster: a copy of the database that was restored goes on as a new one.

-- Where this copy lives: another one after a dump was restored, in the same cluster too, since no
-- table gets the oid of an older one. Where the right to ask is missing, agents alone tell.
CREATE OR REPLACE FUNCTION place_of_cluster() RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    server text := '';
BEGIN
    BEGIN
        SELECT system_identifier INTO server FROM pg_control_system();
    EXCEPTION WHEN insufficient_privilege THEN
        NULL;
    END;
    RETURN format('%s/%s/%s', server, (SELECT oid FROM pg_database WHERE datname = current_database()),
                  'cluster'::regclass::oid);
END $$;

-- A new life: what runs is given up, since it may have gone on in the life before, and ids jump to the
-- next full thousand, so that those which people saw there are not given out again soon. What waited for webhooks when
-- the copy was made was told by that life.
CREATE OR REPLACE FUNCTION begin_life() RETURNS void LANGUAGE sql AS $$
    DELETE FROM webhook_events;
    WITH ended AS (
        UPDATE allocations SET state = 'TERMINATED', end_time = least(clock_timestamp(),
                greatest(start_time, placed_time, (SELECT seen_at FROM leader))), -- when that life was last seen
            exit_reason = 'the database was restored: what this run did since is not known'
        WHERE state <> 'TERMINATED' AND kind = 'TRIAL' RETURNING trial_id)
    UPDATE trials SET run_id = run_id + 1 WHERE id IN (SELECT trial_id FROM ended);
    INSERT INTO settings (key, value) VALUES ('last_ids', jsonb_build_object(
        'exp', (SELECT coalesce(max(id), 0) FROM experiments), 'trial', (SELECT coalesce(max(id), 0) FROM trials)))
    ON CONFLICT (key) DO UPDATE SET value = jsonb_build_object(
        'exp', greatest((settings.value->>'exp')::bigint, (excluded.value->>'exp')::bigint),
        'trial', greatest((settings.value->>'trial')::bigint, (excluded.value->>'trial')::bigint));
    UPDATE settings SET value = jsonb_build_object('exp', ((value->>'exp')::bigint / 1000 + 1) * 1000,
        'trial', ((value->>'trial')::bigint / 1000 + 1) * 1000) WHERE key = 'last_ids';
$$;

-- The line goes on with the epoch that was just gained.
CREATE OR REPLACE FUNCTION go_on_with_life(p_epoch bigint, p_url text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    here text := place_of_cluster();
    c cluster;
    new boolean;
BEGIN
    SELECT * INTO c FROM cluster;
    new := c.new_life_wanted OR (c.place <> '' AND c.place <> here);
    UPDATE lives SET last_batch = coalesce((SELECT number FROM batches WHERE epoch = lives.epoch), 0)
        WHERE last_batch IS NULL;
    INSERT INTO lives (epoch, nonce, url, is_new, is_chosen)
        VALUES (p_epoch, gen_random_uuid(), p_url, new, c.new_life_wanted);
    UPDATE cluster SET place = here, new_life_wanted = false;
    IF new THEN
        PERFORM begin_life();
    END IF;
END $$;
