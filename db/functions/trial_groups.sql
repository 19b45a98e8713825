-- Trials of the experiments that a search finds, by some of their values: how many, and the spread of metrics.

-- The value that key i of $1 groups by.
CREATE OR REPLACE FUNCTION group_key(key jsonb, i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE key->>'kind' WHEN 'hp' THEN format('hp_at(t.hparams, $1->%s->>''name'')', i) WHEN 'tags' THEN 'to_jsonb(e.label)'
        WHEN 'project' THEN 'to_jsonb((SELECT w.name || '' / '' || p.name FROM projects p JOIN workspaces w ON w.id = p.workspace_id WHERE p.id = e.project_id))'
        ELSE format('to_jsonb(%s)', CASE key->>'name' WHEN 'user' THEN '(SELECT u.username FROM users u WHERE u.id = e.owner_id)'
            ELSE search_column(key->>'name') END) END
$$;

-- Metric i of $2 as the summary of trial t has it; what is the same for all trials is looked up once, and so is its number.
CREATE OR REPLACE FUNCTION group_metric(i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format('CASE WHEN has_ended(t.state) AND NOT t.has_tail THEN t.summary_metrics #> (SELECT ARRAY[summary_key($2->%1$s->>''group''), '
        '$2->%1$s->>''name'', $2->%1$s->>''stat'']) ELSE trial_stat(t.id, false, t.summary_metrics, $2->%1$s) END v%1$s', i)
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

-- The largest groups first, of so many trials at most: where there are more one row says so. A trial stands in the group
-- of each label that its experiment has, and counts once. The experiments' ids come as an array, whose length the plan
-- follows. Groups are found by a hash of what their trials have in common, which no aggregate that sorts may stand beside:
-- who is in one comes as arrays, of which only the first 20 members are made. Trials are never sorted, with all their values.
-- The ids are joined with the experiments even where nothing else is asked of those: then the plan knows that each is there
-- once, and where many are found it reads all trials in their order, not those of each by an index.
CREATE OR REPLACE FUNCTION group_trials(q jsonb, p_project bigint, p_keys jsonb, p_metrics jsonb, p_most integer)
    RETURNS TABLE (doc jsonb, all_groups bigint, all_trials bigint) LANGUAGE plpgsql STABLE SET work_mem = '64MB' SET enable_mergejoin = off AS $$
DECLARE
    n integer := jsonb_array_length(p_metrics);
    ids integer[] := ARRAY(SELECT find_experiments(q, p_project));
    many bigint;
    is_tagged boolean := p_keys @> '[{"kind": "tags"}]';
    keys text := (SELECT string_agg(group_key(k, (i - 1)::integer), ', ' ORDER BY i) FROM jsonb_array_elements(p_keys) WITH ORDINALITY o(k, i));
    is_one boolean := jsonb_array_length(p_keys) = 1;
    metrics text := coalesce((SELECT string_agg(', ' || group_metric(i), '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    numbers text := coalesce((SELECT string_agg(', ' || group_number(i), '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    arrays text := coalesce((SELECT string_agg(format(', array_agg(m%s) a%1$s', i), '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    columns text := coalesce((SELECT string_agg(', a' || i, '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    names text := coalesce((SELECT string_agg('m' || i, ', ' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    spreads text := coalesce((SELECT string_agg(group_spread(i), ', ' ORDER BY i) FROM generate_series(0, n - 1) i), '');
BEGIN
    EXECUTE 'SELECT coalesce(sum(s.trials), 0) FROM unnest($1) f(id) JOIN experiment_sums s ON s.experiment_id = f.id' INTO many USING ids;
    IF many > p_most THEN
        RETURN QUERY SELECT NULL::jsonb, 0::bigint, many;
        RETURN;
    END IF;
    RETURN QUERY EXECUTE 'WITH g AS (SELECT k, count(*) AS n, array_agg(x.exp) AS exps, array_agg(x.trial) AS trials, '
        || 'jsonb_build_array(' || spreads || ') AS spreads' || arrays || ' FROM (SELECT y.*' || numbers
        || ' FROM (SELECT e.id AS exp, t.id AS trial, ' || CASE WHEN is_one THEN keys ELSE format('jsonb_build_array(%s)', keys) END || ' AS k'
        || metrics || ' FROM (SELECT ' || CASE WHEN keys ~ '\me\.' THEN 'e.*' ELSE 'e.id' END || CASE WHEN is_tagged THEN ', l.label' ELSE '' END
        || ' FROM unnest($3) f(id) JOIN experiments e ON e.id = f.id '
        || CASE WHEN is_tagged THEN 'LEFT JOIN LATERAL unnest(ARRAY(SELECT DISTINCT jsonb_array_elements_text(e.labels))) l(label) ON true ' ELSE '' END
        || 'OFFSET 0) e JOIN trials t ON t.experiment_id = e.id OFFSET 0) y OFFSET 0) x GROUP BY k) SELECT jsonb_build_object(''values'', g.key, ''experiments'', '
        || '(SELECT count(*) FROM (SELECT DISTINCT unnest(g.exps)) e), '
        || '''trials'', g.n, ''metrics'', g.spreads, ''members'', (SELECT jsonb_agg(jsonb_build_object(''experimentId'', m.exp, ''trialId'', m.trial, '
        || '''metrics'', jsonb_build_array(' || names || ')) ORDER BY m.trial) FROM (SELECT * FROM unnest(exps, trials' || columns
        || ') u(exp, trial' || coalesce(nullif(', ' || names, ', '), '') || ') ORDER BY trial LIMIT 20) m)), g.all_groups, $4 FROM (SELECT *, '
        || CASE WHEN is_one THEN 'jsonb_build_array(k)' ELSE 'k' END || ' AS key, count(*) OVER () AS all_groups FROM g ORDER BY n DESC, key LIMIT 1000) g ORDER BY g.n DESC, g.key'
        USING p_keys, p_metrics, ids, many;
END $$;
