-- Checkpoint stores.

-- The place of a checkpoint_storage section, as proto/storeplace.c has it; null: of no kind with a directory.
CREATE OR REPLACE FUNCTION store_place(s jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN p LIKE '/%' THEN
        coalesce(nullif(rtrim(regexp_replace(regexp_replace(p || '/', '(/\.)+(?=/)', '', 'g'), '/+', '/', 'g'), '/'), ''), '/') END
    FROM (SELECT CASE s->>'type' WHEN 'directory' THEN s->>'container_path'
        WHEN 'shared_fs' THEN CASE WHEN s->>'storage_path' LIKE '/%' THEN s->>'storage_path'
            ELSE (s->>'host_path') || coalesce('/' || (s->>'storage_path'), '') END END p) x
$$;

-- The newest checkpoints of a place: some of them are there if the store is.
CREATE OR REPLACE FUNCTION store_known(p_place text) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_agg(uuid) FROM (SELECT c.uuid FROM checkpoints c JOIN experiments e ON e.id = c.experiment_id
        WHERE c.state IN ('COMPLETED', 'PARTIALLY_DELETED') AND store_place(e.config->'checkpoint_storage') = p_place
        ORDER BY c.report_time DESC LIMIT 64) x
$$;
