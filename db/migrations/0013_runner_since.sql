-- Since when, and in which run, a trial does what runner_state says: how long a validation or a checkpoint took.
ALTER TABLE trials ADD COLUMN runner_since timestamptz, ADD COLUMN runner_run integer;
