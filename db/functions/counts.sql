-- What lists of experiments would have to count at every look, kept beside the rows by triggers.

-- experiment_counts, by what lists filter by.
CREATE OR REPLACE FUNCTION count_experiments() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        UPDATE experiment_counts SET n = n - 1 WHERE project_id = OLD.project_id AND owner_id = OLD.owner_id
            AND state = OLD.state AND archived = OLD.archived;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO experiment_counts AS c VALUES (NEW.project_id, NEW.owner_id, NEW.state, NEW.archived, 1)
            ON CONFLICT (project_id, owner_id, state, archived) DO UPDATE SET n = c.n + 1;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER experiments_counted AFTER INSERT OR DELETE ON experiments
    FOR EACH ROW EXECUTE FUNCTION count_experiments();
CREATE TRIGGER experiments_moved AFTER UPDATE OF project_id, owner_id, state, archived ON experiments FOR EACH ROW
    WHEN (ROW(NEW.project_id, NEW.owner_id, NEW.state, NEW.archived)
          IS DISTINCT FROM ROW(OLD.project_id, OLD.owner_id, OLD.state, OLD.archived))
    EXECUTE FUNCTION count_experiments();

-- label_counts: a label of a project's experiments and how many have it.
CREATE OR REPLACE FUNCTION count_labels() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' THEN
        UPDATE label_counts c SET n = c.n - x.n FROM (SELECT label, count(*) n FROM jsonb_array_elements_text(OLD.labels)
            y(label) GROUP BY 1) x WHERE c.project_id = OLD.project_id AND c.label = x.label;
    END IF;
    IF TG_OP <> 'DELETE' THEN
        INSERT INTO label_counts AS c SELECT NEW.project_id, label, count(*) FROM jsonb_array_elements_text(NEW.labels)
            y(label) GROUP BY 2 ON CONFLICT (project_id, label) DO UPDATE SET n = c.n + excluded.n;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER experiments_labeled AFTER INSERT OR DELETE ON experiments FOR EACH ROW EXECUTE FUNCTION count_labels();
CREATE TRIGGER experiments_relabeled AFTER UPDATE OF labels, project_id ON experiments FOR EACH ROW
    WHEN (ROW(NEW.labels, NEW.project_id) IS DISTINCT FROM ROW(OLD.labels, OLD.project_id)) EXECUTE FUNCTION count_labels();

-- Whether its files count as those of its experiment.
CREATE OR REPLACE FUNCTION is_counted_checkpoint(p_state text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT p_state IN ('COMPLETED', 'PARTIALLY_DELETED')
$$;

-- experiment_sums: an experiment's trials.
CREATE OR REPLACE FUNCTION sum_trial() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'DELETE' THEN
        UPDATE experiment_sums SET trials = trials - 1 WHERE experiment_id = OLD.experiment_id;
    ELSE
        INSERT INTO experiment_sums AS s (experiment_id, trials) VALUES (NEW.experiment_id, 1)
            ON CONFLICT (experiment_id) DO UPDATE SET trials = s.trials + 1;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER trials_summed AFTER INSERT OR DELETE ON trials FOR EACH ROW EXECUTE FUNCTION sum_trial();

-- experiment_sums: its checkpoints and their bytes.
CREATE OR REPLACE FUNCTION sum_checkpoint() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP <> 'INSERT' AND is_counted_checkpoint(OLD.state) THEN
        UPDATE experiment_sums SET checkpoints = checkpoints - 1, bytes = bytes - OLD.bytes
            WHERE experiment_id = OLD.experiment_id;
    END IF;
    IF TG_OP <> 'DELETE' AND is_counted_checkpoint(NEW.state) AND NEW.experiment_id IS NOT NULL THEN
        INSERT INTO experiment_sums AS s (experiment_id, checkpoints, bytes) VALUES (NEW.experiment_id, 1, NEW.bytes)
            ON CONFLICT (experiment_id) DO UPDATE SET checkpoints = s.checkpoints + 1, bytes = s.bytes + NEW.bytes;
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER checkpoints_summed AFTER INSERT OR DELETE ON checkpoints FOR EACH ROW EXECUTE FUNCTION sum_checkpoint();
CREATE TRIGGER checkpoints_changed AFTER UPDATE OF state, bytes, experiment_id ON checkpoints FOR EACH ROW
    WHEN (ROW(NEW.state, NEW.bytes, NEW.experiment_id) IS DISTINCT FROM ROW(OLD.state, OLD.bytes, OLD.experiment_id))
    EXECUTE FUNCTION sum_checkpoint();
