-- Who had how many slots, and for how long: a row for each run that has ended, which outlives its experiment and goes when it is
-- old (retention).
CREATE TABLE slot_uses (
    allocation_id text PRIMARY KEY,
    experiment_id integer NOT NULL, -- may be gone, as the workspace may
    user_id integer NOT NULL,
    workspace_id integer NOT NULL,
    kind text NOT NULL,
    labels jsonb NOT NULL,          -- of the experiment at the end, as its owner and workspace are
    slots integer NOT NULL,
    resource_pool text NOT NULL,
    start_time timestamptz NOT NULL, -- it got its slots
    end_time timestamptz NOT NULL
);
CREATE INDEX slot_uses_end ON slot_uses (end_time);

-- The same by day of UTC, which stays.
CREATE TABLE slot_use_days (
    day date NOT NULL,
    user_id integer NOT NULL,
    workspace_id integer NOT NULL,
    labels jsonb NOT NULL,
    resource_pool text NOT NULL,
    slot_seconds double precision NOT NULL
);
CREATE UNIQUE INDEX slot_use_days_key ON slot_use_days (day, user_id, workspace_id, md5(labels::text || resource_pool));

CREATE FUNCTION pg_temp.days_between(p_start timestamptz, p_end timestamptz)
    RETURNS TABLE (day date, seconds double precision) LANGUAGE sql IMMUTABLE AS $$
    SELECT d::date, extract(epoch FROM least(p_end AT TIME ZONE 'UTC', d + interval '1 day')
                                       - greatest(p_start AT TIME ZONE 'UTC', d))::float8
    FROM generate_series(date_trunc('day', p_start AT TIME ZONE 'UTC'), p_end AT TIME ZONE 'UTC', interval '1 day') d
    WHERE d < p_end AT TIME ZONE 'UTC' AND p_start < p_end
$$;

CREATE TEMPORARY TABLE placed ON COMMIT DROP AS
    SELECT trial_id, run_id, to_timestamp(max(at_us) FILTER (WHERE kind = 'placed') / 1e6) AS at
    FROM trial_timeline WHERE kind IN ('queued', 'placed') GROUP BY 1, 2;
ANALYZE placed;

-- What waited and was given up before it got a slot has used none.
CREATE VIEW pg_temp.ended AS
    SELECT a.id, e.id AS experiment_id, e.owner_id, p.workspace_id, a.kind, e.labels, a.slots, a.resource_pool,
        CASE WHEN l.trial_id IS NULL THEN a.start_time ELSE l.at END AS start_time, a.end_time
    FROM allocations a JOIN experiments e ON e.id = a.experiment_id JOIN projects p ON p.id = e.project_id
    LEFT JOIN placed l ON l.trial_id = a.trial_id AND l.run_id = a.run_id
    WHERE a.slots > 0 AND a.end_time IS NOT NULL AND (l.trial_id IS NULL OR l.at IS NOT NULL);
INSERT INTO slot_uses (allocation_id, experiment_id, user_id, workspace_id, kind, labels, slots, resource_pool, start_time, end_time)
    SELECT * FROM pg_temp.ended;
INSERT INTO slot_use_days (day, user_id, workspace_id, labels, resource_pool, slot_seconds)
    SELECT d.day, user_id, workspace_id, labels, resource_pool, sum(slots * d.seconds)
    FROM slot_uses, pg_temp.days_between(start_time, end_time) d GROUP BY 1, 2, 3, 4, 5;

-- From here on a leader of the former release waits. First for its logs, whose trigger may come in the same transaction: in the
-- order in which that leader writes. What it ended since this began is few; what it ends later the trigger keeps,
-- which comes in the same transaction.
LOCK TABLE task_logs IN SHARE ROW EXCLUSIVE MODE;
ALTER TABLE allocations ADD COLUMN placed_time timestamptz; -- since when it has its slots
WITH late AS (
    INSERT INTO slot_uses (allocation_id, experiment_id, user_id, workspace_id, kind, labels, slots, resource_pool, start_time,
                           end_time)
        SELECT * FROM pg_temp.ended WHERE end_time > now() - interval '1 hour' ON CONFLICT DO NOTHING RETURNING *)
INSERT INTO slot_use_days AS s (day, user_id, workspace_id, labels, resource_pool, slot_seconds)
    SELECT d.day, user_id, workspace_id, labels, resource_pool, sum(slots * d.seconds)
    FROM late, pg_temp.days_between(start_time, end_time) d GROUP BY 1, 2, 3, 4, 5
    ON CONFLICT (day, user_id, workspace_id, md5(labels::text || resource_pool))
        DO UPDATE SET slot_seconds = s.slot_seconds + excluded.slot_seconds;
UPDATE allocations a SET placed_time = coalesce((SELECT max(to_timestamp(l.at_us / 1e6)) FROM trial_timeline l
        WHERE l.trial_id = a.trial_id AND l.run_id = a.run_id AND l.kind = 'placed'), a.start_time)
    WHERE state NOT IN ('PENDING', 'TERMINATED');
DROP VIEW pg_temp.ended;
DROP FUNCTION pg_temp.days_between(timestamptz, timestamptz);
