-- Trials of the experiments that a search finds, by some of their values: how many, and the spread of metrics.

-- The value that key i of $1 groups by.
CREATE OR REPLACE FUNCTION group_key(key jsonb, i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE key->>'kind' WHEN 'hp' THEN format('hp_at(t.hparams, $1->%s->>''name'')', i) WHEN 'tags' THEN 'to_jsonb(l.label)'
        WHEN 'project' THEN 'to_jsonb((SELECT w.name || '' / '' || p.name FROM projects p JOIN workspaces w ON w.id = p.workspace_id WHERE p.id = e.project_id))'
        ELSE format('to_jsonb(%s)', CASE key->>'name' WHEN 'user' THEN '(SELECT u.username FROM users u WHERE u.id = e.owner_id)'
            ELSE search_column(key->>'name') END) END
$$;

-- Metric i of $2 as the summary of trial t has it; what is the same for all trials is looked up once.
CREATE OR REPLACE FUNCTION group_metric(i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format('CASE WHEN has_ended(t.state) AND NOT t.has_tail THEN t.summary_metrics->(SELECT summary_key($2->%1$s->>''group''))'
        '->(SELECT $2->%1$s->>''name'')->(SELECT $2->%1$s->>''stat'') ELSE trial_stat(t.id, false, t.summary_metrics, $2->%1$s) END v%1$s', i)
$$;

-- What number that is; one that is not finite is none.
CREATE OR REPLACE FUNCTION group_number(i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format('CASE WHEN jsonb_typeof(v%1$s) = ''number'' THEN v%1$s::float8 END m%1$s', i)
$$;

-- Of numbers so large that a sum of their squares has no room there is no mean.
CREATE OR REPLACE FUNCTION group_spread(i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format('jsonb_build_object(''n'', count(m%1$s), ''min'', min(m%1$s), ''max'', max(m%1$s), '
        '''mean'', CASE WHEN max(abs(m%1$s)) < 1e140 THEN avg(m%1$s) FILTER (WHERE abs(m%1$s) < 1e140) END, '
        '''deviation'', CASE WHEN max(abs(m%1$s)) < 1e140 THEN stddev_samp(m%1$s) FILTER (WHERE abs(m%1$s) < 1e140) END)', i)
$$;

-- The largest groups first, of so many trials at most: one more than p_most tells that there are more. A trial stands in
-- the group of each label that its experiment has, and counts once. Groups are found by a hash, which no aggregate that
-- sorts may stand beside: who is in one comes as arrays, of which only the first 20 members are made.
CREATE OR REPLACE FUNCTION group_trials(q jsonb, p_project bigint, p_keys jsonb, p_metrics jsonb, p_most integer)
    RETURNS TABLE (doc jsonb, all_groups bigint, all_trials bigint) LANGUAGE plpgsql STABLE SET work_mem = '64MB' AS $$
DECLARE
    n integer := jsonb_array_length(p_metrics);
    keys text := (SELECT string_agg(group_key(k, (i - 1)::integer), ', ' ORDER BY i) FROM jsonb_array_elements(p_keys) WITH ORDINALITY o(k, i));
    metrics text := coalesce((SELECT string_agg(', ' || group_metric(i), '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    numbers text := coalesce((SELECT string_agg(', ' || group_number(i), '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    arrays text := coalesce((SELECT string_agg(format(', array_agg(m%s) a%1$s', i), '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    columns text := coalesce((SELECT string_agg(', a' || i, '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    names text := coalesce((SELECT string_agg('m' || i, ', ' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    spreads text := coalesce((SELECT string_agg(group_spread(i), ', ' ORDER BY i) FROM generate_series(0, n - 1) i), '');
BEGIN
    RETURN QUERY EXECUTE 'WITH c AS MATERIALIZED (SELECT t.experiment_id AS exp, t.id AS trial FROM find_experiments($3, $4) f(id) '
        || 'JOIN trials t ON t.experiment_id = f.id LIMIT $5 + 1), g AS (SELECT x.key, count(*) AS n, array_agg(x.exp) AS exps, '
        || 'array_agg(x.trial) AS trials, jsonb_build_array(' || spreads || ') AS spreads' || arrays || ' FROM (SELECT y.*' || numbers
        || ' FROM (SELECT e.id AS exp, t.id AS trial, jsonb_build_array(' || keys || ') AS key' || metrics
        || ' FROM c JOIN experiments e ON e.id = c.exp JOIN trials t ON t.id = c.trial '
        || CASE WHEN p_keys @> '[{"kind": "tags"}]' THEN 'LEFT JOIN LATERAL (SELECT DISTINCT jsonb_array_elements_text(e.labels) AS label) l ON true ' ELSE '' END
        || 'OFFSET 0) y) x GROUP BY x.key) SELECT jsonb_build_object(''values'', g.key, ''experiments'', (SELECT count(DISTINCT e) FROM unnest(g.exps) e), '
        || '''trials'', g.n, ''metrics'', g.spreads, ''members'', (SELECT jsonb_agg(jsonb_build_object(''experimentId'', m.exp, ''trialId'', m.trial, '
        || '''metrics'', jsonb_build_array(' || names || ')) ORDER BY m.trial) FROM (SELECT * FROM unnest(exps, trials' || columns
        || ') u(exp, trial' || coalesce(nullif(', ' || names, ', '), '') || ') ORDER BY trial LIMIT 20) m)), g.all_groups, (SELECT count(*) FROM c) '
        || 'FROM (SELECT *, count(*) OVER () AS all_groups FROM g ORDER BY n DESC, key LIMIT 1000) g ORDER BY g.n DESC, g.key'
        USING p_keys, p_metrics, q, p_project, p_most;
END $$;
