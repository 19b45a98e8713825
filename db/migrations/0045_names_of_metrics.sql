-- The names of an experiment's metrics, for the pages that ask for them: they were gathered from the summaries of all its
-- trials, of 5,000 too. Kept as the summaries are; what is new in the tails is looked up.

-- Nobody may write between the count and the triggers: a leader may serve meanwhile, which writes trials before experiments.
LOCK TABLE trials, experiments IN SHARE ROW EXCLUSIVE MODE;
CREATE TABLE metric_names (
    experiment_id integer NOT NULL REFERENCES experiments ON DELETE CASCADE,
    grp text NOT NULL,     -- as in trials.summary_metrics
    name text NOT NULL,
    trials bigint NOT NULL -- whose summary has it
) WITH (fillfactor = 70);
-- A name may be longer than an index takes.
CREATE UNIQUE INDEX metric_names_once ON metric_names (experiment_id, grp, md5(name));

CREATE FUNCTION name_metrics() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    had jsonb := CASE WHEN TG_OP = 'INSERT' THEN '{}' ELSE OLD.summary_metrics END;
    has jsonb := CASE WHEN TG_OP = 'DELETE' THEN '{}' ELSE NEW.summary_metrics END;
BEGIN
    IF has <> '{}' THEN
        INSERT INTO metric_names AS m (experiment_id, grp, name, trials)
            SELECT NEW.experiment_id, x.grp, x.name, 1 FROM (
                SELECT g.key, k FROM jsonb_each(has) g, jsonb_object_keys(g.value) k
                EXCEPT SELECT g.key, k FROM jsonb_each(had) g, jsonb_object_keys(g.value) k) x(grp, name)
            ON CONFLICT (experiment_id, grp, md5(name)) DO UPDATE SET trials = m.trials + 1;
    END IF;
    IF had <> '{}' THEN -- an experiment that is being deleted has no rows any more
        UPDATE metric_names m SET trials = m.trials - 1 FROM (
                SELECT g.key, k FROM jsonb_each(had) g, jsonb_object_keys(g.value) k
                EXCEPT SELECT g.key, k FROM jsonb_each(has) g, jsonb_object_keys(g.value) k) x(grp, name)
            WHERE m.experiment_id = OLD.experiment_id AND m.grp = x.grp AND md5(m.name) = md5(x.name);
    END IF;
    RETURN NULL;
END $$;
INSERT INTO metric_names SELECT t.experiment_id, g.key, k.name, count(*)
    FROM trials t, jsonb_each(t.summary_metrics) g, jsonb_object_keys(g.value) k(name) GROUP BY 1, 2, 3;
CREATE TRIGGER trials_named AFTER INSERT OR DELETE ON trials FOR EACH ROW EXECUTE FUNCTION name_metrics();
CREATE TRIGGER trials_renamed AFTER UPDATE OF summary_metrics ON trials FOR EACH ROW
    WHEN (NEW.summary_metrics IS DISTINCT FROM OLD.summary_metrics) EXECUTE FUNCTION name_metrics();
