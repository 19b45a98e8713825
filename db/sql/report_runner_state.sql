-- Of trial $1, by its run $2: its state is $3 now, and an epoch has $4 batches (0: it does not say). How long a
-- validation or a checkpoint took, which it leaves, is a line of the timeline.
WITH old AS (
    SELECT id, run_id, runner_state, runner_since, runner_run FROM trials
    WHERE id = $1::integer AND run_id = $2::integer FOR UPDATE
), line AS (
    INSERT INTO trial_timeline (trial_id, at_us, run_id, node, kind, duration_us, detail)
    SELECT id, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, run_id, -1, runner_state,
           greatest(1, (extract(epoch FROM clock_timestamp() - runner_since) * 1000000)::bigint), ''
    FROM old
    WHERE runner_state <> $3 AND runner_state IN ('validating', 'checkpointing') AND runner_run = run_id
    ON CONFLICT DO NOTHING
)
UPDATE trials t
SET runner_state = $3, last_activity = now(), runner_run = old.run_id,
    epoch_batches = coalesce(nullif($4::bigint, 0), t.epoch_batches),
    runner_since = CASE WHEN old.runner_state = $3 AND old.runner_run = old.run_id THEN old.runner_since
                        ELSE clock_timestamp() END
FROM old
WHERE t.id = old.id
