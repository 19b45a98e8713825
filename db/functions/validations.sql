-- Validations: which is the latest and the best of a trial and of its experiment.

-- What a trial's validation at these steps said.
CREATE OR REPLACE FUNCTION validation_at(p_trial integer, p_steps integer) RETURNS jsonb LANGUAGE plpgsql STABLE
    SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (SELECT m.metrics->'validation_metrics' FROM metrics m WHERE m.trial_id = p_trial AND m.grp = 'validation'
            AND m.steps = p_steps AND NOT m.archived ORDER BY m.id DESC LIMIT 1);
END $$;

-- The same of a training report.
CREATE OR REPLACE FUNCTION training_at(p_trial integer, p_steps integer) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (SELECT m.metrics->'avg_metrics' FROM metrics m WHERE m.trial_id = p_trial AND m.grp = 'training'
            AND m.steps = p_steps AND NOT m.archived ORDER BY m.id DESC LIMIT 1);
END $$;

-- The searcher's metric of a trial's validation at these steps: the former release's collection asks value_at().
CREATE OR REPLACE FUNCTION value_at(p_trial integer, p_steps integer) RETURNS double precision LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan AS $$BEGIN RETURN (
    SELECT searcher_value(m.metrics, e.searcher_metric) FROM metrics m JOIN trials t ON t.id = m.trial_id
    JOIN experiments e ON e.id = t.experiment_id
    WHERE m.trial_id = p_trial AND m.steps = p_steps AND m.grp = 'validation' AND NOT m.archived
    ORDER BY m.id DESC LIMIT 1
); END$$;

-- Whether a is better than b.
CREATE OR REPLACE FUNCTION is_better(a double precision, b double precision, smaller boolean) RETURNS boolean LANGUAGE sql IMMUTABLE
    PARALLEL SAFE AS $$ SELECT CASE WHEN smaller THEN a < b ELSE a > b END $$;

-- The experiment's best trial, anew.
CREATE OR REPLACE FUNCTION refresh_best_trial(p_experiment integer) RETURNS void LANGUAGE sql AS $$
    UPDATE experiments e SET (best_trial_id, best_metric) =
        (SELECT t.id, t.searcher_metric_value FROM trials t
         WHERE t.experiment_id = e.id AND t.searcher_metric_value IS NOT NULL
         ORDER BY CASE WHEN e.smaller_is_better THEN t.searcher_metric_value ELSE -t.searcher_metric_value END, t.id
         LIMIT 1)
    WHERE e.id = p_experiment
$$;

-- Latest and best validation of a trial from its live rows, and its experiment's best trial.
CREATE OR REPLACE FUNCTION refresh_validations(p_trial integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    e record;
BEGIN
    SELECT x.id, x.searcher_metric, x.smaller_is_better INTO e
        FROM experiments x JOIN trials t ON t.experiment_id = x.id WHERE t.id = p_trial;
    UPDATE trials t SET
        (latest_validation, latest_value) = (SELECT metrics_workload(m, false),
            number_of(m.metrics->'validation_metrics'->e.searcher_metric) FROM metrics m WHERE m.trial_id = p_trial
            AND m.grp = 'validation' AND NOT m.archived AND m.metrics->'validation_metrics' ? e.searcher_metric
            ORDER BY m.steps DESC, m.run_id DESC LIMIT 1),
        (best_validation, searcher_metric_value) = (SELECT metrics_workload(m, false), x.v FROM metrics m,
            LATERAL (SELECT searcher_value(m.metrics, e.searcher_metric) v) x
            WHERE m.trial_id = p_trial AND m.grp = 'validation' AND NOT m.archived AND x.v IS NOT NULL
            ORDER BY CASE WHEN e.smaller_is_better THEN x.v ELSE -x.v END, m.steps LIMIT 1)
        WHERE t.id = p_trial;
    PERFORM refresh_best_trial(e.id);
END $$;

-- What follows from a validation that is kept: the trial's latest, its best, its experiment's best trial.
CREATE OR REPLACE FUNCTION note_validation(p_trial integer, p_run integer, p_steps integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    x record;
BEGIN
    SELECT metrics_workload(m, false) doc, m.metrics->'validation_metrics' ? e.searcher_metric has,
           number_of(m.metrics->'validation_metrics'->e.searcher_metric) latest,
           searcher_value(m.metrics, e.searcher_metric) v, t.searcher_metric_value best, e.smaller_is_better, e.id exp
        INTO x FROM trials t JOIN experiments e ON e.id = t.experiment_id JOIN metrics m ON m.trial_id = t.id
        WHERE t.id = p_trial AND m.trial_id = p_trial AND m.grp = 'validation' AND m.steps = p_steps AND m.run_id = p_run;
    IF x.has THEN
        UPDATE trials SET latest_validation = x.doc, latest_value = x.latest WHERE id = p_trial;
    END IF;
    IF x.v IS NOT NULL AND (x.best IS NULL OR CASE WHEN x.smaller_is_better THEN x.v < x.best ELSE x.v > x.best END) THEN
        UPDATE trials SET best_validation = x.doc, searcher_metric_value = x.v WHERE id = p_trial;
        UPDATE experiments SET best_trial_id = p_trial, best_metric = x.v WHERE id = x.exp AND (best_metric IS NULL
            OR CASE WHEN smaller_is_better THEN x.v < best_metric ELSE x.v > best_metric END);
    END IF;
END $$;

-- The bests from p_from on, anew: one of them was rolled back or changed.
CREATE OR REPLACE FUNCTION rebuild_bests(p_experiment integer, p_metric text, p_smaller boolean, p_from timestamptz) RETURNS void
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

-- A validation has come, was filled up or is rolled back: checkpoints of its steps have it, and the row of bests
-- that a chart of the experiment draws (experiment_bests).
CREATE OR REPLACE FUNCTION keep_validation() RETURNS trigger LANGUAGE plpgsql AS $$
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
CREATE TRIGGER metrics_validation AFTER INSERT OR UPDATE OF archived, metrics ON metrics FOR EACH ROW
    WHEN (NEW.grp = 'validation') EXECUTE FUNCTION keep_validation();

-- A checkpoint comes after its validation as often as before.
CREATE OR REPLACE FUNCTION keep_checkpoint_validation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.validation := validation_at(NEW.trial_id, NEW.steps);
    RETURN NEW;
END $$;
CREATE TRIGGER checkpoints_validation BEFORE INSERT OR UPDATE OF trial_id, steps ON checkpoints FOR EACH ROW
    EXECUTE FUNCTION keep_checkpoint_validation();
