-- Ids of experiments and trials.

-- Ids are never given out twice, also after the youngest experiment was deleted, or some of its trials were.
CREATE OR REPLACE FUNCTION note_last_ids(p_experiment integer) RETURNS void LANGUAGE sql AS $$
    INSERT INTO settings (key, value) VALUES ('last_ids', jsonb_build_object('exp', p_experiment,
        'trial', (SELECT coalesce(max(id), 0) FROM trials WHERE experiment_id = p_experiment)))
    ON CONFLICT (key) DO UPDATE SET value = jsonb_build_object(
        'exp', greatest((settings.value->>'exp')::bigint, (excluded.value->>'exp')::bigint),
        'trial', greatest((settings.value->>'trial')::bigint, (excluded.value->>'trial')::bigint))
    WHERE (settings.value->>'exp')::bigint < (excluded.value->>'exp')::bigint
        OR (settings.value->>'trial')::bigint < (excluded.value->>'trial')::bigint
$$;

-- They are in no row any more once the experiment is gone.
CREATE OR REPLACE FUNCTION keep_last_ids() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_last_ids(OLD.id);
    RETURN OLD;
END $$;
CREATE TRIGGER experiments_keep_last_ids BEFORE DELETE ON experiments
    FOR EACH ROW EXECUTE FUNCTION keep_last_ids();
