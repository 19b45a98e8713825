-- What follows from validations, kept where lists and charts look for it: the running best of an experiment of 5,000
-- trials was made of 50,000 rows at each look, and a list of checkpoints by a metric looked each one's up.

ALTER TABLE checkpoints ADD COLUMN validation jsonb; -- the live validation's metrics at its steps
CREATE TABLE experiment_bests (   -- each validation that was the best of its experiment when it came
    experiment_id integer NOT NULL REFERENCES experiments ON DELETE CASCADE,
    end_time timestamptz NOT NULL,
    id bigint NOT NULL,           -- of the report
    trial_id integer NOT NULL,
    value double precision NOT NULL,
    PRIMARY KEY (experiment_id, end_time, id)
);

CREATE FUNCTION validation_at(p_trial integer, p_steps integer) RETURNS jsonb LANGUAGE plpgsql STABLE
    SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (SELECT m.metrics->'validation_metrics' FROM metrics m WHERE m.trial_id = p_trial AND m.grp = 'validation'
            AND m.steps = p_steps AND NOT m.archived ORDER BY m.id DESC LIMIT 1);
END $$;
CREATE FUNCTION is_better(a double precision, b double precision, smaller boolean) RETURNS boolean LANGUAGE sql IMMUTABLE
    PARALLEL SAFE AS $$ SELECT CASE WHEN smaller THEN a < b ELSE a > b END $$;

-- The bests from p_from on, anew: one of them was rolled back or changed.
CREATE FUNCTION rebuild_bests(p_experiment integer, p_metric text, p_smaller boolean, p_from timestamptz) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    sign integer := CASE WHEN p_smaller THEN 1 ELSE -1 END;
    before double precision := (SELECT value FROM experiment_bests b WHERE b.experiment_id = p_experiment
                                AND b.end_time < p_from ORDER BY b.end_time DESC, b.id DESC LIMIT 1);
BEGIN
    DELETE FROM experiment_bests b WHERE b.experiment_id = p_experiment AND b.end_time >= p_from;
    INSERT INTO experiment_bests SELECT p_experiment, r.end_time, r.id, r.trial_id, r.x
        FROM (SELECT v.*, min(sign * x) OVER (ORDER BY end_time, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) past
              FROM (SELECT m.end_time, m.id, m.trial_id, searcher_value(m.metrics, p_metric) x
                    FROM trials t JOIN metrics m ON m.trial_id = t.id
                    WHERE t.experiment_id = p_experiment AND m.grp = 'validation' AND NOT m.archived AND m.end_time >= p_from) v
              WHERE x IS NOT NULL) r
        WHERE sign * r.x < least(r.past, sign * before) OR r.past IS NULL AND before IS NULL;
END $$;

-- A validation has come, was filled up or is rolled back.
CREATE FUNCTION keep_validation() RETURNS trigger LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    e record;
    x double precision;
    old_x double precision;
BEGIN
    UPDATE checkpoints SET validation = validation_at(NEW.trial_id, NEW.steps)
        WHERE trial_id = NEW.trial_id AND steps = NEW.steps;
    SELECT y.id, y.searcher_metric, y.smaller_is_better INTO e
        FROM trials t JOIN experiments y ON y.id = t.experiment_id WHERE t.id = NEW.trial_id;
    x := CASE WHEN NOT NEW.archived THEN searcher_value(NEW.metrics, e.searcher_metric) END;
    IF TG_OP = 'UPDATE' THEN
        old_x := CASE WHEN NOT OLD.archived THEN searcher_value(OLD.metrics, e.searcher_metric) END;
    END IF;
    IF x IS NOT DISTINCT FROM old_x THEN
        RETURN NULL;
    ELSIF old_x IS NOT NULL THEN
        IF EXISTS (SELECT 1 FROM experiment_bests b WHERE b.experiment_id = e.id AND b.end_time = OLD.end_time AND b.id = OLD.id) THEN
            PERFORM rebuild_bests(e.id, e.searcher_metric, e.smaller_is_better, OLD.end_time);
        END IF;
        RETURN NULL;
    END IF;
    IF NOT coalesce(is_better(x, (SELECT b.value FROM experiment_bests b WHERE b.experiment_id = e.id
            AND (b.end_time, b.id) < (NEW.end_time, NEW.id) ORDER BY b.end_time DESC, b.id DESC LIMIT 1),
            e.smaller_is_better), true) THEN
        RETURN NULL;
    END IF;
    DELETE FROM experiment_bests b WHERE b.experiment_id = e.id AND (b.end_time, b.id) > (NEW.end_time, NEW.id)
        AND NOT is_better(b.value, x, e.smaller_is_better);
    INSERT INTO experiment_bests VALUES (e.id, NEW.end_time, NEW.id, NEW.trial_id, x);
    RETURN NULL;
END $$;
CREATE FUNCTION keep_checkpoint_validation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.validation := validation_at(NEW.trial_id, NEW.steps);
    RETURN NEW;
END $$;

-- Labels, counted: a list of them looked at every experiment.
CREATE TABLE label_counts (
    project_id integer NOT NULL,
    label text NOT NULL,
    n bigint NOT NULL,
    PRIMARY KEY (project_id, label)
) WITH (fillfactor = 50);
CREATE FUNCTION count_labels() RETURNS trigger LANGUAGE plpgsql AS $$
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

-- Nobody may write between what is made here and the triggers: a leader may serve meanwhile.
LOCK TABLE experiments, trials, checkpoints, metrics IN SHARE ROW EXCLUSIVE MODE;
UPDATE checkpoints SET validation = validation_at(trial_id, steps) WHERE validation_at(trial_id, steps) IS NOT NULL;
SELECT rebuild_bests(id, searcher_metric, smaller_is_better, '-infinity') FROM experiments;
INSERT INTO label_counts SELECT e.project_id, l.label, count(*) FROM experiments e, jsonb_array_elements_text(e.labels) l(label)
    GROUP BY 1, 2;
CREATE TRIGGER metrics_validation AFTER INSERT OR UPDATE OF archived, metrics ON metrics FOR EACH ROW
    WHEN (NEW.grp = 'validation') EXECUTE FUNCTION keep_validation();
CREATE TRIGGER checkpoints_validation BEFORE INSERT OR UPDATE OF trial_id, steps ON checkpoints FOR EACH ROW
    EXECUTE FUNCTION keep_checkpoint_validation();
CREATE TRIGGER experiments_labeled AFTER INSERT OR DELETE ON experiments FOR EACH ROW EXECUTE FUNCTION count_labels();
CREATE TRIGGER experiments_relabeled AFTER UPDATE OF labels, project_id ON experiments FOR EACH ROW
    WHEN (ROW(NEW.labels, NEW.project_id) IS DISTINCT FROM ROW(OLD.labels, OLD.project_id)) EXECUTE FUNCTION count_labels();

-- checkpoint.v1.Checkpoint, as text that is sent as it is.
DROP FUNCTION checkpoint_doc;
CREATE FUNCTION checkpoint_doc(p_uuid text) RETURNS json LANGUAGE plpgsql STABLE
    SET plan_cache_mode = force_generic_plan AS $$
DECLARE
    c checkpoints;
    training jsonb;
BEGIN
    SELECT * INTO c FROM checkpoints x WHERE x.uuid = p_uuid;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    SELECT m.metrics INTO training FROM metrics m WHERE m.trial_id = c.trial_id AND m.steps = c.steps
        AND m.grp = 'training' AND NOT m.archived ORDER BY m.id DESC LIMIT 1;
    RETURN (SELECT CASE WHEN c.allocation_id IS NULL THEN '{' ELSE '{"allocationId":' || to_json(c.allocation_id) || ',' END ||
        substr(json_build_object('taskId', c.task_id, 'uuid', c.uuid, 'reportTime', api_time(c.report_time),
            'resources', c.sizes, 'metadata', c.metadata, 'state', 'STATE_' || c.state,
            'training', json_build_object('trialId', c.trial_id, 'experimentId', c.experiment_id,
                'experimentConfig', e.config, 'hparams', t.hparams,
                'trainingMetrics', CASE WHEN training IS NOT NULL THEN metrics_doc(training, 'training', false) END,
                'validationMetrics', CASE WHEN c.validation IS NOT NULL THEN
                    json_build_object('avgMetrics', c.validation, 'batchMetrics', '[]'::json) END,
                'searcherMetric', number_of(c.validation->e.searcher_metric)))::text, 2)
        FROM (SELECT 1) one LEFT JOIN trials t ON t.id = c.trial_id LEFT JOIN experiments e ON e.id = c.experiment_id);
END $$;
CREATE FUNCTION number_of(v jsonb) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN jsonb_typeof(v) = 'number' THEN v::float8 END
$$;
