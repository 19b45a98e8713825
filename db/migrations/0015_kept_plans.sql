-- A function in SQL that is not inlined is planned anew by every statement that calls it: for the documents of
-- the API that costs several times what running it does. In plpgsql the plan is kept with the session.

DO $$
DECLARE
    f record;
BEGIN
    FOR f IN SELECT p.oid, p.prosrc, p.provolatile FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
            AND p.prolang = (SELECT oid FROM pg_language WHERE lanname = 'sql')
            AND p.proname IN ('trial_doc', 'experiment_doc', 'checkpoint_doc', 'task_doc', 'value_at') LOOP
        EXECUTE format('CREATE OR REPLACE FUNCTION %I(%s) RETURNS %s LANGUAGE plpgsql STABLE SET plan_cache_mode = force_generic_plan '
                       'AS %L', (SELECT proname FROM pg_proc WHERE oid = f.oid), pg_get_function_arguments(f.oid),
                       pg_get_function_result(f.oid), 'BEGIN RETURN (' || f.prosrc || '); END');
    END LOOP;
END $$;

-- The same as before with each checkpoint's value looked up once.
CREATE OR REPLACE FUNCTION best_checkpoint_doc(p_trial integer) RETURNS jsonb LANGUAGE plpgsql STABLE
    SET plan_cache_mode = force_generic_plan AS $$
BEGIN
    RETURN (SELECT checkpoint_workload(c) FROM checkpoints c JOIN experiments e ON e.id = c.experiment_id,
        LATERAL (SELECT searcher_value(m.metrics, e.searcher_metric) v FROM metrics m WHERE m.trial_id = p_trial
                 AND m.grp = 'validation' AND m.steps = c.steps AND NOT m.archived ORDER BY m.id DESC LIMIT 1) x
        WHERE c.trial_id = p_trial AND c.state = 'COMPLETED' AND x.v IS NOT NULL
        ORDER BY CASE WHEN e.smaller_is_better THEN x.v ELSE -x.v END, c.steps LIMIT 1);
END $$;

-- What the usual list of experiments filters by.
CREATE INDEX experiments_list ON experiments (id) INCLUDE (archived, state, owner_id, project_id);
