-- Of each file, as metadata.json has them: {path: "xxh128:..."}. NULL: the report did not say.
ALTER TABLE checkpoints ADD COLUMN hashes jsonb;
