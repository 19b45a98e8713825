-- What no restore can repeat. Each leadership draws a nonce; this table is the line of them that this
-- database comes from. An agent remembers the newest (epoch, nonce, batch) that it heard of: one that
-- is not in the line, or beyond the last batch of its epoch, is of another life: the database was
-- restored from an older copy, or two masters serve two copies of it.

CREATE TABLE lives (
    epoch bigint PRIMARY KEY,
    nonce text NOT NULL,
    last_batch bigint,                       -- null: it leads
    began_at timestamptz NOT NULL DEFAULT now(),
    url text NOT NULL DEFAULT '',
    is_new boolean NOT NULL DEFAULT false,   -- what ran before it is given up
    is_chosen boolean NOT NULL DEFAULT false -- an administrator said so: agents of other lives may come
);

ALTER TABLE cluster ADD COLUMN place text NOT NULL DEFAULT '',            -- see place_of_cluster()
    ADD COLUMN new_life_wanted boolean NOT NULL DEFAULT false;

-- What tasks of other lives sent, and how they ended: kept aside.
CREATE TABLE strays (
    id bigint PRIMARY KEY GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT now(),
    agent_id text NOT NULL DEFAULT '',
    alloc_id text NOT NULL,
    what text NOT NULL,                      -- the request's method and path, or "exit"
    body text NOT NULL
);
CREATE INDEX strays_alloc ON strays (alloc_id);

-- Where this copy lives: another one after a dump was restored, in the same cluster too, since no
-- table gets the oid of an older one. Where the right to ask is missing, agents alone tell.
CREATE FUNCTION place_of_cluster() RETURNS text LANGUAGE plpgsql AS $$
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
-- next full thousand, so that those which people saw there are not given out again soon.
CREATE FUNCTION begin_life() RETURNS void LANGUAGE sql AS $$
    WITH ended AS (
        UPDATE allocations SET state = 'TERMINATED', end_time = clock_timestamp(),
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
CREATE FUNCTION go_on_with_life(p_epoch bigint, p_url text) RETURNS void LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE FUNCTION take_lead(p_seen bigint, p_url text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    gained bigint;
BEGIN
    PERFORM 1 FROM cluster WHERE epoch = p_seen;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    BEGIN
        PERFORM pg_terminate_backend(l.pid) FROM pg_locks l
            WHERE l.locktype = 'advisory' AND l.classid = 0 AND l.objid = 4919001 AND l.objsubid = 1
                AND l.mode = 'ShareLock' AND l.granted AND l.pid <> pg_backend_pid()
                AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database());
    EXCEPTION WHEN insufficient_privilege THEN
        NULL;
    END;
    UPDATE cluster SET epoch = epoch + 1 WHERE epoch = p_seen RETURNING epoch INTO gained;
    IF gained IS NULL THEN
        RETURN 0;
    END IF;
    PERFORM go_on_with_life(gained, p_url);
    UPDATE leader SET beat = beat + 1, url = p_url, seen_at = clock_timestamp();
    UPDATE batches SET epoch = gained, number = 0;
    PERFORM pg_advisory_lock_shared(4919001);
    RETURN gained;
END $$;
