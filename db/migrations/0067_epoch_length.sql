-- Batches of an epoch, where the loop of a trial tells of them: a chart can count epochs by it.
ALTER TABLE trials ADD COLUMN epoch_batches bigint;
