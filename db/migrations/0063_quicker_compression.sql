-- What is written with every bundle of reports is packed with lz4, which takes a fraction of the time of PostgreSQL's own
-- way, and is read faster. Rows that are there stay as they are. Partitions to come have it of their table.
DO $$
DECLARE
    t regclass;
    col text;
BEGIN
    FOR t IN SELECT 'metric_chunks'::regclass UNION ALL SELECT inhrelid FROM pg_inherits WHERE inhparent = 'metric_chunks'::regclass LOOP
        FOREACH col IN ARRAY ARRAY['doc', 'points', 'report_steps', 'report_times', 'report_values'] LOOP
            EXECUTE format('ALTER TABLE %s ALTER COLUMN %I SET COMPRESSION lz4', t, col);
        END LOOP;
    END LOOP;
    ALTER TABLE trials ALTER summary_metrics SET COMPRESSION lz4;
EXCEPTION WHEN feature_not_supported THEN NULL; -- a server built without lz4 uses its own
END $$;
