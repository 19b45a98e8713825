-- Summaries of a trial's metrics, by group and metric: those of its chunks are kept, its tail is added when asked.

-- One metric's summary after one more chunk of it.
CREATE OR REPLACE FUNCTION summary_after(old jsonb, c jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    numbers boolean := jsonb_typeof(c->1) = 'number';
    n bigint := (c->>0)::bigint;
    low double precision;
    high double precision;
    total double precision;
BEGIN
    IF numbers AND coalesce(old->>'type', 'number') = 'number' THEN
        low := (c#>>'{2,0}')::float8;
        high := (c#>>'{3,0}')::float8;
        total := metric_bounded((c->>1)::float8);
        IF old IS NOT NULL THEN
            n := n + (old->>'count')::bigint;
            low := least(low, (old->>'min')::float8);
            high := greatest(high, (old->>'max')::float8);
            total := total + metric_bounded((old->>'sum')::float8);
        END IF;
        RETURN jsonb_build_object('type', 'number', 'count', n, 'min', low, 'max', high, 'sum', total,
                                  'mean', metric_mean(total, n), 'last', c->-1);
    ELSIF NOT numbers AND c->>1 = 'nan' AND old->>'type' = 'number' THEN
        RETURN old || jsonb_build_object('last', c->-1);
    END IF;
    RETURN jsonb_build_object('type', CASE WHEN numbers THEN 'string' WHEN c->>1 = 'nan' THEN 'string'
                                           WHEN old IS NULL OR old->>'type' = c->>1 THEN c->>1 ELSE 'string' END,
                              'count', n + coalesce((old->>'count')::bigint, 0), 'last', c->-1);
END $$;

-- Summaries (by group key, then metric) after one more chunk of group key g: summary_after() of each, written out for
-- numbers, which nearly all are.
CREATE OR REPLACE FUNCTION summary_merge_chunk(old jsonb, g text, doc jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    kept jsonb := coalesce(old->g, '{}');
BEGIN
    RETURN old || jsonb_build_object(g, kept || (
        SELECT coalesce(jsonb_object_agg(key, CASE WHEN n IS NULL THEN summary_after(s, c) ELSE jsonb_build_object(
            'type', 'number', 'count', n, 'min', least((c#>'{2,0}')::float8, (s->>'min')::float8),
            'max', greatest((c#>'{3,0}')::float8, (s->>'max')::float8), 'sum', total, 'mean', metric_mean(total, n),
            'last', c->-1) END), '{}')
        FROM (SELECT key, c, s, CASE WHEN numbers THEN (c->0)::bigint + (s->>'count')::bigint END n,
                     CASE WHEN numbers THEN metric_bounded((c->1)::float8) + metric_bounded((s->>'sum')::float8) END total
              FROM (SELECT v.key, v.value c, kept->v.key s,
                           jsonb_typeof(v.value->1) = 'number' AND kept->v.key->>'type' = 'number' numbers
                    FROM jsonb_each(doc) v OFFSET 0) x OFFSET 0) y));
END $$;

-- A metric's chunk, as chunk_made() has it, where some of its values are no numbers or its summary is not of
-- numbers.
CREATE OR REPLACE FUNCTION odd_chunk(vals jsonb[], numbers bigint, total float8, low float8, high float8, last jsonb) RETURNS jsonb
    LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    n bigint := cardinality(vals);
    nans bigint;
    kind text;
    kind2 text;
BEGIN
    SELECT count(*) FILTER (WHERE metric_kind(v) = 'nan'), min(metric_kind(v)), max(metric_kind(v)) INTO nans, kind, kind2
        FROM unnest(vals) v WHERE jsonb_typeof(v) <> 'number';
    IF numbers > 0 AND numbers + nans = n THEN
        RETURN jsonb_build_array(numbers, total, jsonb_build_array(low), jsonb_build_array(high), last);
    END IF;
    RETURN jsonb_build_array(n, CASE WHEN numbers + nans = n THEN 'nan' WHEN numbers = 0 AND kind = kind2 THEN kind
                                     ELSE 'string' END, last);
END $$;

-- A group's summary, kept, with the rows of (p_after, p_upto] that it does not hold yet: what summary_merge_chunk()
-- makes of it with chunk_made(), value for value, without a chunk in between. Of one metric only where p_name is
-- given.
CREATE OR REPLACE FUNCTION summary_with_rows(kept jsonb, p_trial integer, p_grp text, p_after integer, p_upto integer, p_name text DEFAULT NULL)
    RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    k text := metrics_key(p_grp);
BEGIN
    RETURN (
    SELECT coalesce(kept, '{}') || coalesce(jsonb_object_agg(x.key, CASE
        WHEN x.numbers = x.rows AND coalesce(x.old->>'type', 'number') = 'number' THEN jsonb_build_object('type', 'number',
            'count', x.n, 'min', least(x.low, (x.old->>'min')::float8), 'max', greatest(x.high, (x.old->>'max')::float8),
            'sum', x.total, 'mean', metric_mean(x.total, x.n), 'last', x.last)
        ELSE summary_after(x.old, odd_chunk(x.vals, x.numbers, x.part, x.low, x.high, x.last)) END), '{}')
    FROM (SELECT y.*, kept->y.key old, y.numbers + coalesce((kept->y.key->>'count')::bigint, 0) n,
                 metric_bounded(y.part) + coalesce(metric_bounded((kept->y.key->>'sum')::float8), 0) total,
                 vals[array_position(steps, newest)] last
          FROM (SELECT r.key, count(*) AS rows, count(num) numbers, sum(metric_bounded(num)) part, min(num) low, max(num) high,
                       max(r.steps) newest, array_agg(r.steps) steps, array_agg(r.value) vals
                FROM (SELECT v.key, v.value, m.steps,
                             CASE WHEN jsonb_typeof(v.value) = 'number' THEN v.value::float8 END num
                      FROM metrics m, jsonb_each(CASE WHEN p_name IS NULL THEN m.metrics->k
                          WHEN m.metrics->k ? p_name THEN jsonb_build_object(p_name, m.metrics->k->p_name) END) v
                      WHERE m.trial_id = p_trial AND m.grp = p_grp AND NOT m.archived
                        AND m.steps > p_after AND m.steps <= p_upto OFFSET 0) r -- each number is read once
                GROUP BY r.key) y) x);
END $$;

-- A trial's summaries with its tails.
CREATE OR REPLACE FUNCTION trial_summary(p_trial integer, kept jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    h metric_heads;
    key text;
BEGIN
    FOR h IN SELECT * FROM metric_heads WHERE trial_id = p_trial AND tail > 0 LOOP
        key := summary_key(h.grp);
        kept := kept || jsonb_build_object(key, summary_with_rows(kept->key, p_trial, h.grp, h.closed_steps, h.steps));
    END LOOP;
    RETURN kept;
END $$;

-- trial_summary(p_trial, kept)->summary_key(p_grp)->p_name.
CREATE OR REPLACE FUNCTION metric_summary(p_trial integer, kept jsonb, p_grp text, p_name text) RETURNS jsonb
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    h metric_heads;
    key text := summary_key(p_grp);
    s jsonb := kept->key;
BEGIN
    s := CASE WHEN s ? p_name THEN jsonb_build_object(p_name, s->p_name) END;
    FOR h IN SELECT * FROM metric_heads WHERE trial_id = p_trial AND tail > 0 AND summary_key(grp) = key LOOP
        s := summary_with_rows(s, p_trial, h.grp, h.closed_steps, h.steps, p_name);
    END LOOP;
    RETURN s->p_name;
END $$;
