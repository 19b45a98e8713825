-- Trials of the experiments that a search finds, by some of their values: how many, and the spread of metrics.

-- The value that key i of $1 groups by.
CREATE OR REPLACE FUNCTION group_key(key jsonb, i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE key->>'kind' WHEN 'hp' THEN format('hp_at(t.hparams, $1->%s->>''name'')', i) WHEN 'tags' THEN 'l.label'
        WHEN 'project' THEN '(SELECT w.name || '' / '' || p.name FROM projects p JOIN workspaces w ON w.id = p.workspace_id WHERE p.id = e.project_id)'
        ELSE CASE key->>'name' WHEN 'user' THEN '(SELECT u.username FROM users u WHERE u.id = e.owner_id)'
            ELSE search_column(key->>'name') END END
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

-- What of it goes into a spread, as trial_block_metrics has it, and the number for the members.
CREATE OR REPLACE FUNCTION group_parts(i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format(', CASE WHEN m%1$s IS NULL THEN 0 ELSE 1 END n%1$s, m%1$s low%1$s, m%1$s high%1$s, '
        'CASE WHEN abs(m%1$s) < 1e140 THEN ARRAY[1, m%1$s, 0] END state%1$s, m%1$s', i)
$$;

-- The same of block b.
CREATE OR REPLACE FUNCTION group_block_parts(stat text, i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format(', coalesce(q%1$s.%2$s_n, 0) n%1$s, q%1$s.%2$s_low low%1$s, q%1$s.%2$s_high high%1$s, q%1$s.%2$s_state state%1$s, NULL::float8 m%1$s',
        i, CASE WHEN stat IN ('last', 'min', 'max', 'mean') THEN stat END)
$$;

-- Where a block has metric i.
CREATE OR REPLACE FUNCTION group_block_join(i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format(' LEFT JOIN trial_block_metrics q%1$s ON q%1$s.experiment_id = b.experiment_id AND q%1$s.block = b.block AND md5(q%1$s.name) = '
        'md5($2->%1$s->>''name'') AND q%1$s.name = $2->%1$s->>''name'' AND q%1$s.grp = summary_key($2->%1$s->>''group'')', i)
$$;

-- Of numbers so large that a sum of their squares has no room there is no mean.
CREATE OR REPLACE FUNCTION group_spread(i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format('jsonb_build_object(''n'', sum(n%1$s), ''min'', min(low%1$s), ''max'', max(high%1$s), '
        '''mean'', CASE WHEN greatest(-min(low%1$s), max(high%1$s)) < 1e140 THEN float8_avg(spread_merge(state%1$s)) END, '
        '''deviation'', CASE WHEN greatest(-min(low%1$s), max(high%1$s)) < 1e140 THEN float8_stddev_samp(spread_merge(state%1$s)) END)', i)
$$;

-- The first 20 members of group g: trials that were read, and of the blocks that begin first those that they begin with,
-- whose n numbers are looked up.
CREATE OR REPLACE FUNCTION group_members(n integer, columns text, names text, metrics text, numbers text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT 'SELECT p.exp, p.trial' || coalesce((SELECT string_agg(format(', CASE WHEN p.is_read THEN p.m%s ELSE z.m%1$s END m%1$s', i), '' ORDER BY i)
            FROM generate_series(0, n - 1) i), '')
        || ' FROM (SELECT u.exp, i.id AS trial, u.is_read' || names || ' FROM (SELECT (place & 2147483647)::integer exp, (place >> 32)::integer trial, '
        || 'place & 2147483648 > 0 is_read' || names || ' FROM (SELECT * FROM unnest(places' || columns || ') v(place' || names || ') ORDER BY place LIMIT 20) v OFFSET 0) u '
        || 'CROSS JOIN LATERAL unnest(CASE WHEN u.is_read THEN ARRAY[u.trial] '
        || 'ELSE (SELECT b.first_ids FROM trial_blocks b WHERE b.experiment_id = u.exp AND b.block = u.trial >> 8) END) i(id) ORDER BY i.id LIMIT 20) p'
        || CASE WHEN n > 0 THEN ' LEFT JOIN LATERAL (SELECT 1' || numbers || ' FROM (SELECT 1' || metrics || ' FROM trials t WHERE t.id = p.trial OFFSET 0) y) z '
           || 'ON NOT p.is_read' ELSE '' END
$$;

-- The largest groups first, of so many trials at most: where there are more one row says so. A trial stands in the group
-- of each label that its experiment has, and counts once. Of trials that have ended their blocks are read (trial_blocks), but
-- where they differ in what they are grouped by; then, and before they have ended, each trial. Groups are found by a hash of
-- what they have in common, which no aggregate that sorts may stand beside: who is in one comes as arrays, of which only the
-- first 20 members are made. A place in one is an integer that sorts: where it begins (32 bits), whether it is a trial that was
-- read (1), its experiment (31). Experiments that one block holds as a whole are counted as they come, others once each. What
-- found those is no part of this plan, which knows how many there are.
CREATE OR REPLACE FUNCTION group_trials(q jsonb, p_project bigint, p_keys jsonb, p_metrics jsonb, p_most integer)
    RETURNS TABLE (doc jsonb, all_groups bigint, all_trials bigint) LANGUAGE plpgsql STABLE SET work_mem = '64MB' SET enable_mergejoin = off SET enable_sort = off AS $$
DECLARE
    n integer := jsonb_array_length(p_metrics);
    ids integer[] := (find_experiments_page(q, p_project, 0, -1)).ids;
    sizes bigint[];
    many bigint;
    made text[] := ARRAY(SELECT group_key(k, (i - 1)::integer) FROM jsonb_array_elements(p_keys) WITH ORDINALITY o(k, i) ORDER BY i);
    keys text := (SELECT string_agg(format(', %s k%s', k, i), '' ORDER BY i) FROM unnest(made) WITH ORDINALITY o(k, i));
    read text := (SELECT string_agg('k' || i, ', ' ORDER BY i) FROM unnest(made) WITH ORDINALITY o(k, i));
    hps text[] := ARRAY(SELECT unnest(ARRAY[k->>'name', split_part(k->>'name', '.', 1)]) FROM jsonb_array_elements(p_keys) k WHERE k->>'kind' = 'hp');
    is_summed text := CASE WHEN '' = ANY (hps) OR EXISTS (SELECT FROM unnest(made) k WHERE k ~ '\mt\.' AND k !~ '^hp_at\(') THEN 'false'
        ELSE concat_ws(' AND ', 'b.kept AND b.trials > 0', CASE WHEN hps <> '{}' THEN '(b.varying IS NULL OR NOT b.varying && $5)' END, CASE WHEN n > 0 THEN 'b.has_metrics' END) END;
    found text := ' FROM unnest($3, $6) f(id, size)' || CASE WHEN keys ~ '\m[el]\.' THEN ' JOIN experiments e ON e.id = f.id' ELSE '' END || CASE WHEN 'l.label' = ANY (made)
        THEN ' LEFT JOIN LATERAL unnest(ARRAY(SELECT DISTINCT jsonb_array_elements_text(e.labels))) l(label) ON true' ELSE '' END;
    metrics text := coalesce((SELECT string_agg(', ' || group_metric(i), '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    numbers text := coalesce((SELECT string_agg(', ' || group_number(i), '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    parts text := coalesce((SELECT string_agg(group_parts(i), '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    block_parts text := coalesce((SELECT string_agg(group_block_parts(p_metrics->i->>'stat', i), '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    block_joins text := coalesce((SELECT string_agg(group_block_join(i), '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    arrays text := coalesce((SELECT string_agg(format(', array_agg(m%s) a%1$s', i), '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    columns text := coalesce((SELECT string_agg(', a' || i, '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    names text := coalesce((SELECT string_agg(', m' || i, '' ORDER BY i) FROM generate_series(0, n - 1) i), '');
    spreads text := coalesce((SELECT string_agg(group_spread(i), ', ' ORDER BY i) FROM generate_series(0, n - 1) i), '');
BEGIN
    EXECUTE 'SELECT coalesce(sum(s.trials), 0), array_agg(f.id), array_agg(s.trials) FROM unnest($1) f(id) JOIN experiment_sums s ON s.experiment_id = f.id'
        INTO many, ids, sizes USING ids;
    IF many > p_most THEN
        RETURN QUERY SELECT NULL::jsonb, 0::bigint, many;
        RETURN;
    END IF;
    RETURN QUERY EXECUTE 'WITH x AS (SELECT CASE WHEN f.size > b.trials THEN f.id END AS part_of, b.first_ids[1]::bigint << 32 | f.id AS place, b.trials AS n' || replace(replace(keys, 't.external_id', 'NULL::text'), 't.hparams', 'b.hparams')
        || block_parts || found || ' JOIN trial_blocks b ON b.experiment_id = f.id AND ' || is_summed || block_joins
        || ' UNION ALL SELECT z.exp, z.trial::bigint << 32 | 2147483648 | z.exp, 1, ' || read || parts || ' FROM (SELECT y.*' || numbers || ' FROM (SELECT f.id AS exp, t.id AS trial' || keys || metrics
        || found || ' JOIN trial_blocks b ON b.experiment_id = f.id AND NOT (' || is_summed || ') CROSS JOIN LATERAL (SELECT t.* FROM trials t '
        || 'WHERE t.experiment_id = b.experiment_id AND t.id BETWEEN b.block << 8 AND (b.block << 8) + 255 AND trial_is_settled(t.state, t.has_tail) OFFSET 0) t '
        || 'UNION ALL SELECT f.id, t.id' || keys || metrics || found || ' JOIN trials t ON t.experiment_id = f.id AND (t.has_tail OR trial_is_live(t.state)) OFFSET 0) y '
        || 'OFFSET 0) z), g AS (SELECT jsonb_build_array(' || read || ') AS key, sum(n) AS n, array_agg(place) AS places, '
        || 'count(*) - count(part_of) AS alone, array_agg(part_of) FILTER (WHERE part_of IS NOT NULL) AS parts, '
        || 'jsonb_build_array(' || spreads || ') AS spreads' || arrays || ' FROM x GROUP BY ' || read || ') SELECT jsonb_build_object(''values'', g.key, ''experiments'', '
        || 'g.alone + (SELECT count(DISTINCT e) FROM unnest(g.parts) e), ''trials'', g.n, ''metrics'', g.spreads, '
        || '''members'', (SELECT jsonb_agg(jsonb_build_object(''experimentId'', m.exp, ''trialId'', m.trial, '
        || '''metrics'', jsonb_build_array(' || ltrim(names, ',') || ')) ORDER BY m.trial) FROM (' || group_members(n, columns, names, metrics, numbers)
        || ') m)), g.all_groups, $4 FROM (SELECT *, '
        || 'count(*) OVER () AS all_groups FROM g ORDER BY n DESC, key LIMIT 1000) g ORDER BY g.n DESC, g.key'
        USING p_keys, p_metrics, ids, many, hps, sizes;
END $$;
