-- What has to happen inside one statement where several masters may write.

-- Every writing transaction starts with it. The share lock makes a new leader's raise of the epoch wait
-- for transactions under way, so none of an old leader can commit after the new one began.
CREATE OR REPLACE FUNCTION check_epoch(p_epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM cluster WHERE epoch = p_epoch FOR SHARE;
    IF NOT FOUND THEN
        RAISE EXCEPTION 'another master leads since epoch %', p_epoch USING ERRCODE = 'DE001';
    END IF;
END $$;

-- Batch p_number of the leader's rows begins: its transaction counts it. A batch that is there already
-- (its commit was not heard of) is refused as DE005: it is done.
CREATE OR REPLACE FUNCTION begin_batch(p_epoch bigint, p_number bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    b batches;
BEGIN
    SELECT * INTO b FROM batches FOR UPDATE;
    IF b.epoch = p_epoch AND b.number = p_number THEN
        RAISE EXCEPTION 'batch % is committed already', p_number USING ERRCODE = 'DE005';
    ELSIF b.epoch <> p_epoch OR b.number <> p_number - 1 THEN
        RAISE EXCEPTION 'batch % does not follow batch % of epoch %', p_number, b.number, b.epoch
            USING ERRCODE = 'DE006';
    END IF;
    UPDATE batches SET number = p_number;
END $$;

-- Takes the place of the leader of epoch p_seen: the new epoch, or 0 when another was quicker. The
-- sessions of the old one are ended, since a stopped one may hold the cluster's row in a transaction
-- that it never ends; where the right for that is missing, the raised epoch alone keeps it from writing. One at a time:
-- who comes while another takes it would end the sessions of the new leader.
CREATE OR REPLACE FUNCTION take_lead(p_seen bigint, p_url text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    gained bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(4919003) THEN
        RETURN 0;
    END IF;
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
