-- Ids of experiments and trials.

-- Ids are never given out twice, also after the youngest experiment was deleted.
CREATE OR REPLACE FUNCTION keep_last_ids() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO settings (key, value) VALUES ('last_ids', jsonb_build_object('exp', OLD.id,
        'trial', (SELECT coalesce(max(id), 0) FROM trials WHERE experiment_id = OLD.id)))
    ON CONFLICT (key) DO UPDATE SET value = jsonb_build_object(
        'exp', greatest((settings.value->>'exp')::bigint, (excluded.value->>'exp')::bigint),
        'trial', greatest((settings.value->>'trial')::bigint, (excluded.value->>'trial')::bigint));
    RETURN OLD;
END $$;
CREATE TRIGGER experiments_keep_last_ids BEFORE DELETE ON experiments
    FOR EACH ROW EXECUTE FUNCTION keep_last_ids();
