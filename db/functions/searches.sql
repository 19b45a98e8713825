-- Experiments by a tree of conditions and several keys (proto/expsearch.h). The texts that are put together here are
-- this file's own: names and values stay in $1 and $2, from where the statement reads them.

-- {"group", "name", "stat"}: of a trial that has ended mostly what is kept says it all.
CREATE OR REPLACE FUNCTION trial_stat(trial_id integer, is_whole boolean, kept jsonb, c jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN nullif((CASE WHEN is_whole THEN kept->summary_key(c->>'group')->(c->>'name')
        ELSE metric_summary(trial_id, kept, c->>'group', c->>'name') END)->(c->>'stat'), 'null');
END $$;

-- Of experiment e, joined as find_experiments() does.
CREATE OR REPLACE FUNCTION search_column(name text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE name WHEN 'id' THEN 'e.id' WHEN 'forkedFrom' THEN 'e.parent_id' WHEN 'numTrials' THEN 'coalesce(s.trials, 0)'
        WHEN 'progress' THEN 'e.progress' WHEN 'duration' THEN 'seconds_between(e.start_time, coalesce(e.end_time, now()))'
        WHEN 'checkpointCount' THEN 'coalesce(s.checkpoints, 0)' WHEN 'checkpointSize' THEN 'coalesce(s.bytes, 0)'
        WHEN 'searcherMetricsVal' THEN 'nullif(e.best_metric, ''NaN'')' WHEN 'projectId' THEN 'e.project_id'
        WHEN 'name' THEN 'e.name' WHEN 'description' THEN 'e.description' WHEN 'searcherType' THEN '(e.config#>>''{searcher,name}'')'
        WHEN 'searcherMetric' THEN 'e.searcher_metric' WHEN 'resourcePool' THEN 'e.resource_pool' WHEN 'user' THEN 'e.owner_id::text'
        WHEN 'archived' THEN 'e.archived::text' WHEN 'externalExperimentId' THEN 'e.external_id' WHEN 'externalTrialId' THEN 't.external_id'
        WHEN 'state' THEN 'e.state' WHEN 'tags' THEN 'e.labels::text' WHEN 'startTime' THEN 'extract(epoch FROM e.start_time)::float8'
        WHEN 'endTime' THEN 'extract(epoch FROM e.end_time)::float8' END
$$;

-- A time at midnight stands for its day: "on", "on or before" have all of it, "after" nothing.
CREATE OR REPLACE FUNCTION search_time(x text, op text, v text, has_day boolean) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN op = '=' AND has_day THEN format('(%1$s >= %2$s AND %1$s < %2$s + 86400)', x, v)
        WHEN op = '=' THEN format('floor(%s) = floor(%s)', x, v)
        WHEN op = '<=' AND has_day THEN format('%s < %s + 86400', x, v) WHEN op = '>' AND has_day THEN format('%s >= %s + 86400', x, v)
        WHEN op IN ('<', '<=', '>', '>=') THEN format('%s %s %s', x, op, v) END
$$;

-- What the best trial's summary says of the metric that stands at a place of $1 or $2.
CREATE OR REPLACE FUNCTION search_stat(place text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT format('(SELECT CASE WHEN has_ended(x.state) AND NOT x.has_tail '
        'THEN nullif(x.summary_metrics->summary_key(%1$s->>''group'')->(%1$s->>''name'')->(%1$s->>''stat''), ''null'') '
        'ELSE trial_stat(x.id, false, x.summary_metrics, %1$s) END FROM trials x WHERE x.id = e.best_trial_id AND e.best_metric IS NOT NULL)', place)
$$;

-- "=", "contains" or a comparison with leaf i of $1.
CREATE OR REPLACE FUNCTION search_positive(leaf jsonb, i integer, op text) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    v text := format('($1->%s->''value'')', i);
    x text := search_column(leaf->>'name');
BEGIN
    IF op NOT IN ('=', '<', '<=', '>', '>=', 'contains') THEN
        RAISE EXCEPTION 'no such operator: %', op;
    END IF;
    RETURN CASE leaf->>'kind'
        WHEN 'number' THEN format('%s %s %s::float8', x, op, v)
        WHEN 'time' THEN search_time(x, op, v || '::float8', mod((leaf->>'value')::numeric, 86400) = 0)
        WHEN 'hp' THEN format('hp_fits(hp_spec(e.config, $1->%s->>''name''), %L, %s)', i, op, v)
        WHEN 'metric' THEN format('value_fits(%s, %L, %s)', search_stat('$1->' || i), op, v)
        WHEN 'shown' THEN format(CASE WHEN (leaf->>'but')::boolean THEN '(e.state = ''ACTIVE'' AND NOT %s)' ELSE '%s' END,
            format('e.id IN (SELECT jsonb_array_elements_text(%s)::bigint)', v))
        WHEN 'tags' THEN CASE op WHEN '=' THEN format('e.labels ? (%s#>>''{}'')', v)
            ELSE format('EXISTS (SELECT FROM jsonb_array_elements_text(e.labels) l WHERE lower(l) LIKE text_pattern(%s#>>''{}''))', v) END
        ELSE CASE op WHEN 'contains' THEN format('lower(%s) LIKE text_pattern(%s#>>''{}'')', x, v) ELSE format('%s = %s#>>''{}''', x, v) END
        END;
END $$;

-- "is empty" of leaf i of $1.
CREATE OR REPLACE FUNCTION search_empty(leaf jsonb, i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE leaf->>'kind' WHEN 'hp' THEN format('hp_spec(e.config, $1->%s->>''name'') IS NULL', i)
        WHEN 'metric' THEN search_stat('$1->' || i) || ' IS NULL'
        WHEN 'tags' THEN 'e.labels = ''[]''' WHEN 'text' THEN format('coalesce(%s, '''') = ''''', search_column(leaf->>'name'))
        ELSE format('%s IS NULL', search_column(leaf->>'name')) END
$$;

-- What has no value is equal to nothing and contains nothing. Nothing above turns a null around, and a bare condition may
-- find its index.
CREATE OR REPLACE FUNCTION search_leaf(leaf jsonb, i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE leaf->>'op' WHEN 'isEmpty' THEN search_empty(leaf, i) WHEN 'notEmpty' THEN format('NOT (%s)', search_empty(leaf, i))
        WHEN '!=' THEN format('NOT coalesce(%s, false)', search_positive(leaf, i, '='))
        WHEN 'notContains' THEN format('NOT coalesce(%s, false)', search_positive(leaf, i, 'contains'))
        ELSE search_positive(leaf, i, leaf->>'op') END
$$;

-- The tree: and, or, and the leaves by their number.
CREATE OR REPLACE FUNCTION search_where(node jsonb, leaves jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    how text := CASE WHEN jsonb_typeof(node) = 'object' THEN CASE WHEN node ? 'or' THEN 'or' ELSE 'and' END END;
BEGIN
    IF jsonb_typeof(node) = 'number' THEN
        RETURN search_leaf(leaves->node::integer, node::integer);
    ELSIF how IS NULL THEN
        RETURN 'true';
    END IF;
    RETURN (SELECT '(' || string_agg(search_where(x, leaves), CASE how WHEN 'or' THEN ' OR ' ELSE ' AND ' END ORDER BY i) || ')'
            FROM jsonb_array_elements(node->how) WITH ORDINALITY c(x, i));
END $$;

-- What key i of $2 sorts by where that is a document, which is made once: by its number, then by its text.
CREATE OR REPLACE FUNCTION search_key_doc(key jsonb, i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE key->>'kind' WHEN 'hp' THEN format('hp_shown(t.hparams, e.config, $2->%s->>''name'') k%1$s', i) END
$$;

-- The same of a metric, where best_numbers does not have it.
CREATE OR REPLACE FUNCTION search_key_stat(key jsonb, i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE key->>'kind' WHEN 'metric' THEN format('%s m%s', search_stat('$2->' || i), i) END
$$;

-- What has it mostly: found by its name, not gone through beside all others. The planner may think that there is one row, until
-- there are statistics of a new metric or table, and then compare each with each: so it is told of a thousand that do not come.
CREATE OR REPLACE FUNCTION search_key_join(key jsonb, i integer) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE key->>'kind' WHEN 'metric' THEN format('LEFT JOIN (SELECT experiment_id, last, min, max, mean, odd FROM best_numbers '
        'WHERE digest = md5(summary_key($2->%1$s->>''group'') || ''.'' || ($2->%1$s->>''name''))::uuid AND name = $2->%1$s->>''name'' '
        'AND grp = summary_key($2->%1$s->>''group'') UNION ALL SELECT NULL, NULL, NULL, NULL, NULL, NULL FROM generate_series(1, (SELECT 0))) b%1$s '
        'ON b%1$s.experiment_id = e.id AND u.experiment_id IS NULL ', i) END
$$;

-- What has no value comes last whichever way; each has an id, and so an index has the order.
CREATE OR REPLACE FUNCTION search_key(key jsonb, i integer) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    way text := CASE WHEN (key->>'down')::boolean THEN ' DESC' ELSE ' ASC' END
        || CASE WHEN key->>'name' = 'id' AND key->>'kind' = 'number' THEN '' ELSE ' NULLS LAST' END;
    stat text := CASE WHEN key->>'stat' IN ('last', 'min', 'max', 'mean') THEN key->>'stat' END;
BEGIN
    IF key->>'kind' = 'hp' THEN
        RETURN format('search_number(k.k%1$s)%2$s, (k.k%1$s)#>>''{}''%2$s', i, way);
    ELSIF key->>'kind' = 'metric' THEN
        RETURN format('coalesce(b%1$s.%3$s, search_number(coalesce(m.m%1$s, b%1$s.odd->%3$L)))%2$s, CASE WHEN b%1$s.%3$s IS NULL '
            'AND search_number(coalesce(m.m%1$s, b%1$s.odd->%3$L)) IS NULL THEN coalesce(m.m%1$s, b%1$s.odd->%3$L)#>>''{}'' END%2$s', i, way, stat);
    END IF;
    RETURN CASE key->>'name' WHEN 'user' THEN '(SELECT u.username FROM users u WHERE u.id = e.owner_id)'
           ELSE search_column(key->>'name') END || way;
END $$;

-- The statement behind SELECT: $1 leaves, $2 keys, $3 project, 0 for all. The best trial is joined where something is asked of
-- it: else an index may have it all.
CREATE OR REPLACE FUNCTION search_sql(q jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    docs text := (SELECT string_agg(search_key_doc(k, (i - 1)::integer), ', ') FROM jsonb_array_elements(q->'order') WITH ORDINALITY o(k, i));
    stats text := (SELECT string_agg(search_key_stat(k, (i - 1)::integer), ', ') FROM jsonb_array_elements(q->'order') WITH ORDINALITY o(k, i));
    keys text := (SELECT string_agg(search_key(k, (i - 1)::integer) || ', ' , '' ORDER BY i) FROM jsonb_array_elements(q->'order') WITH ORDINALITY o(k, i));
    joins text := (SELECT string_agg(search_key_join(k, (i - 1)::integer), '' ORDER BY i) FROM jsonb_array_elements(q->'order') WITH ORDINALITY o(k, i));
    found text := search_where(q->'where', q->'leaves');
    columns text := concat_ws(' ', docs, keys, found);
BEGIN
    RETURN 'FROM experiments e '
        || CASE WHEN columns ~ '\ms\.' THEN 'LEFT JOIN experiment_sums s ON s.experiment_id = e.id ' ELSE '' END
        || CASE WHEN columns ~ '\mt\.' THEN 'LEFT JOIN trials t ON t.id = e.best_trial_id AND e.best_metric IS NOT NULL ' ELSE '' END
        || coalesce('LEFT JOIN (SELECT experiment_id FROM best_trials WHERE is_due OR NOT has_numbers '
                    || 'UNION ALL SELECT NULL FROM generate_series(1, (SELECT 0))) u ON u.experiment_id = e.id ' || joins
                    || 'LEFT JOIN LATERAL (SELECT ' || stats || ' WHERE u.experiment_id IS NOT NULL OFFSET 0) m ON true ', '')
        || coalesce('CROSS JOIN LATERAL (SELECT ' || docs || ' OFFSET 0) k ', '') || 'WHERE ($3 = 0 OR e.project_id = $3) '
        || CASE WHEN (q->>'archived')::boolean THEN '' ELSE 'AND NOT e.archived AND ($3 <> 0 OR e.project_id NOT IN (SELECT p.id FROM projects p '
           || 'JOIN workspaces w ON w.id = p.workspace_id WHERE p.archived OR w.archived)) ' END
        || 'AND ' || found || ' ORDER BY ' || keys || 'e.id ';
END $$;

-- Ids in the order asked for, all of them.
CREATE OR REPLACE FUNCTION find_experiments(q jsonb, p_project bigint) RETURNS SETOF integer LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY EXECUTE 'SELECT e.id ' || search_sql(q) USING q->'leaves', q->'order', p_project;
END $$;

-- How many there are without a condition: counted already.
CREATE OR REPLACE FUNCTION count_all_experiments(p_project bigint, p_archived boolean) RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT coalesce(sum(c.n), 0)::bigint FROM experiment_counts c WHERE (p_project = 0 OR c.project_id = p_project) AND (p_archived OR NOT c.archived
        AND (p_project <> 0 OR c.project_id NOT IN (SELECT p.id FROM projects p JOIN workspaces w ON w.id = p.workspace_id WHERE p.archived OR w.archived)))
$$;

-- How many there are, and the ids of a page. Only with a condition all are looked for. group_trials() asks this, too: without a
-- sort, as it is planned itself, the few of a project would be looked for among all that an index has in order.
CREATE OR REPLACE FUNCTION find_experiments_page(q jsonb, p_project bigint, p_offset bigint, p_limit bigint, OUT total bigint, OUT ids integer[])
    LANGUAGE plpgsql STABLE SET enable_sort = on AS $$
DECLARE
    size CONSTANT bigint := page_size(p_limit, 100);
    start bigint;
BEGIN
    IF search_where(q->'where', q->'leaves') = 'true' THEN
        total := count_all_experiments(p_project, (q->>'archived')::boolean);
        EXECUTE 'SELECT ARRAY(SELECT e.id ' || search_sql(q) || 'OFFSET $4 LIMIT $5)' INTO ids
            USING q->'leaves', q->'order', p_project, page_start(total, p_offset), size;
        RETURN;
    END IF;
    ids := ARRAY(SELECT find_experiments(q, p_project));
    total := cardinality(ids);
    start := page_start(total, p_offset);
    ids := ids[(start + 1)::integer:least(start + coalesce(size, total), total)::integer];
END $$;
