-- Partitions of metrics and metric_chunks: one for each 10,000 trials.

-- Partitions for p_trial and the trials to come. ATTACH holds up neither readers nor reports.
CREATE OR REPLACE FUNCTION metric_partitions(p_trial integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    size CONSTANT bigint := 10000;
    base text;
    part text;
    p bigint;
BEGIN
    FOR p IN p_trial / size .. p_trial / size + 1 LOOP
        FOREACH base IN ARRAY ARRAY['metrics', 'metric_chunks'] LOOP
            part := base || '_' || p;
            CONTINUE WHEN to_regclass(part) IS NOT NULL;
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING GENERATED INCLUDING STORAGE '
                           'INCLUDING COMPRESSION)', part, base);
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%s)', base, part,
                           p * size, least((p + 1) * size, 2147483647));
        END LOOP;
    END LOOP;
END $$;

-- Ids may skip numbers: what trials of a statement need is made with them, whatever their ids.
CREATE OR REPLACE FUNCTION metric_partitions_ahead() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM metric_partitions(id) FROM (SELECT DISTINCT ON (id / 10000) id FROM added) first;
    RETURN NULL;
END $$;
CREATE TRIGGER trials_metric_partitions AFTER INSERT ON trials REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION metric_partitions_ahead();

-- In place of a foreign key, which each report would have to look up.
CREATE OR REPLACE FUNCTION drop_trial_metrics() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM metrics WHERE trial_id = OLD.id;
    DELETE FROM metric_chunks WHERE trial_id = OLD.id;
    RETURN NULL;
END $$;
CREATE TRIGGER trials_drop_metrics AFTER DELETE ON trials FOR EACH ROW EXECUTE FUNCTION drop_trial_metrics();
