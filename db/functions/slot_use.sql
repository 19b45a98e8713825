-- Who had how many slots, and for how long.

-- Each day (of UTC: none is longer than another) of [p_from, p_until) in which something that ran from p_start to p_end
-- did, and for how long.
CREATE OR REPLACE FUNCTION use_by_day(p_start timestamptz, p_end timestamptz, p_from date, p_until date)
    RETURNS TABLE (day date, seconds double precision) LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT d::date, extract(epoch FROM least(p_end AT TIME ZONE 'UTC', d + interval '1 day', p_until::timestamp)
                                       - greatest(p_start AT TIME ZONE 'UTC', d))::float8
    FROM generate_series(greatest(date_trunc('day', p_start AT TIME ZONE 'UTC'), p_from::timestamp),
                         least(p_end AT TIME ZONE 'UTC', p_until::timestamp - interval '1 day'), interval '1 day') d
    WHERE d < p_end AT TIME ZONE 'UTC' AND p_start < p_end
$$;

-- Since when a run has its slots; null: it has had none. A master of before there was that column tells in the timeline.
CREATE OR REPLACE FUNCTION slots_since(a allocations) RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT coalesce(a.placed_time, (SELECT to_timestamp(max(at_us) / 1e6) FROM trial_timeline
        WHERE trial_id = a.trial_id AND run_id = a.run_id AND kind = 'placed'))
$$;

-- slot_uses and slot_use_days: what a run had, once it has ended. Both, so that the sums are right when the run itself is
-- forgotten.
CREATE OR REPLACE FUNCTION keep_slot_use() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    since CONSTANT timestamptz := slots_since(NEW);
    u slot_uses;
BEGIN
    IF since IS NULL THEN
        RETURN NULL;
    END IF;
    INSERT INTO slot_uses (allocation_id, experiment_id, user_id, workspace_id, kind, labels, slots, resource_pool, start_time,
                           end_time)
        SELECT NEW.id, e.id, e.owner_id, p.workspace_id, NEW.kind, e.labels, NEW.slots, NEW.resource_pool, since,
            NEW.end_time
        FROM experiments e JOIN projects p ON p.id = e.project_id WHERE e.id = NEW.experiment_id
        ON CONFLICT DO NOTHING RETURNING * INTO u;
    IF FOUND THEN
        INSERT INTO slot_use_days AS s (day, user_id, workspace_id, labels, resource_pool, slot_seconds)
            SELECT day, u.user_id, u.workspace_id, u.labels, u.resource_pool, u.slots * seconds
            FROM use_by_day(u.start_time, u.end_time, '-infinity', 'infinity')
            ON CONFLICT (day, user_id, workspace_id, md5(labels::text || resource_pool))
                DO UPDATE SET slot_seconds = s.slot_seconds + excluded.slot_seconds;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER allocations_used AFTER UPDATE OF end_time ON allocations FOR EACH ROW
    WHEN (OLD.end_time IS NULL AND NEW.end_time IS NOT NULL AND NEW.slots > 0)
    EXECUTE FUNCTION keep_slot_use();
CREATE TRIGGER allocations_used_at_once AFTER INSERT ON allocations FOR EACH ROW -- the batch that has both its start and its end
    WHEN (NEW.end_time IS NOT NULL AND NEW.slots > 0)
    EXECUTE FUNCTION keep_slot_use();

-- What runs, up to now.
CREATE OR REPLACE VIEW slots_in_use AS
    SELECT a.id AS allocation_id, e.id AS experiment_id, e.owner_id AS user_id, p.workspace_id, a.kind, e.labels, a.slots,
        a.resource_pool, slots_since(a) AS start_time, now() AS end_time, true AS runs
    FROM allocations a JOIN experiments e ON e.id = a.experiment_id JOIN projects p ON p.id = e.project_id
    WHERE a.state NOT IN ('PENDING', 'TERMINATED') AND a.end_time IS NULL AND a.slots > 0 AND slots_since(a) IS NOT NULL;
