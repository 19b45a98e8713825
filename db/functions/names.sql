-- Names of metrics: how many a group has, and which an experiment has.

-- How many different names a group may have.
CREATE OR REPLACE FUNCTION names_max() RETURNS integer LANGUAGE sql IMMUTABLE AS 'SELECT 20000';

-- At most so many names has a report; a short one is not looked into: in jsonb a name and its value take 8 bytes.
CREATE OR REPLACE FUNCTION names_in(grp text, m jsonb) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF pg_column_size(m) < 2000 THEN
        RETURN pg_column_size(m) / 8;
    END IF;
    RETURN (SELECT count(*) FROM jsonb_object_keys(m->metrics_key(grp)));
END $$;

-- The same of a report's text, where a name and its value take 5 bytes.
CREATE OR REPLACE FUNCTION names_in_text(grp text, m text) RETURNS integer LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE WHEN octet_length(m) < 2000 THEN octet_length(m) / 5 ELSE names_in(grp, m::jsonb) END;
END $$;

-- At most so many different names does the group have with this report; refuses one that makes them too many. Where
-- the bound does not tell, the names that the summary does not know are counted, at last with the tail's in it.
CREATE OR REPLACE FUNCTION names_with(p_trial integer, p_grp text, m jsonb) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    known integer;
    more integer := names_in(p_grp, m);
    s jsonb;
BEGIN
    SELECT names INTO known FROM metric_heads WHERE trial_id = p_trial AND grp = p_grp;
    IF NOT FOUND THEN
        known := 0;
    END IF;
    FOR try IN 1 .. 2 LOOP
        IF known + more <= names_max() THEN
            RETURN known + more;
        END IF;
        IF try = 2 OR known IS NULL THEN
            PERFORM close_chunk(p_trial, p_grp);
        END IF;
        SELECT coalesce(summary_metrics->summary_key(p_grp), '{}') INTO s FROM trials WHERE id = p_trial;
        SELECT count(*) INTO more FROM jsonb_object_keys(m->metrics_key(p_grp)) k WHERE NOT s ? k;
        IF try = 2 OR known IS NULL THEN
            SELECT count(*) INTO known FROM jsonb_object_keys(s);
        END IF;
    END LOOP;
    IF more > 0 AND known + more > names_max() THEN
        RAISE EXCEPTION 'the trial has reported more than % different metrics in group %; use fewer names',
            names_max(), p_grp USING ERRCODE = '22D01';
    END IF;
    RETURN known + more;
END $$;

-- metric_names: which names an experiment's trials have, and how many have each. Mostly a summary gets no new ones.
CREATE OR REPLACE FUNCTION name_metrics() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    had jsonb := CASE WHEN TG_OP = 'INSERT' THEN '{}' ELSE OLD.summary_metrics END;
    has jsonb := CASE WHEN TG_OP = 'DELETE' THEN '{}' ELSE NEW.summary_metrics END;
BEGIN
    IF TG_OP = 'UPDATE' AND ARRAY(SELECT (g.key, k) FROM jsonb_each(had) g, jsonb_object_keys(g.value) k)
                          = ARRAY(SELECT (g.key, k) FROM jsonb_each(has) g, jsonb_object_keys(g.value) k) THEN
        RETURN NULL;
    END IF;
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
CREATE TRIGGER trials_named AFTER INSERT OR DELETE ON trials FOR EACH ROW EXECUTE FUNCTION name_metrics();
CREATE TRIGGER trials_renamed AFTER UPDATE OF summary_metrics ON trials FOR EACH ROW
    WHEN (NEW.summary_metrics IS DISTINCT FROM OLD.summary_metrics) EXECUTE FUNCTION name_metrics();
