-- Values of a report, and a report as the API has it.

-- Where a report of this group has its values.
CREATE OR REPLACE FUNCTION metrics_key(grp text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE grp WHEN 'validation' THEN 'validation_metrics' ELSE 'avg_metrics' END
$$;

-- Where a trial's summary has this group.
CREATE OR REPLACE FUNCTION summary_key(grp text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE grp WHEN 'validation' THEN 'validation_metrics' WHEN 'training' THEN 'avg_metrics' ELSE grp END
$$;

-- What a value is in a summary: JSON's words, but nan for a double that JSON cannot hold.
CREATE OR REPLACE FUNCTION metric_kind(v jsonb) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN jsonb_typeof(v) = 'string' AND v #>> '{}' IN ('NaN', 'Infinity', '-Infinity') THEN 'nan'
                ELSE jsonb_typeof(v) END
$$;

-- Sums stay finite: better a wrong sum than a refused report.
CREATE OR REPLACE FUNCTION metric_bounded(x double precision) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN x < -1e296 THEN -1e296 WHEN x > 1e296 THEN 1e296 ELSE x END
$$;

-- PostgreSQL refuses a quotient that is too small for a number; n is 10 digits at most.
CREATE OR REPLACE FUNCTION metric_mean(total double precision, n bigint) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN abs(total) < 1e-290 THEN 0 ELSE total / n END
$$;

-- A value as a number; null where it is none.
CREATE OR REPLACE FUNCTION number_of(v jsonb) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN jsonb_typeof(v) = 'number' THEN v::float8 END
$$;

-- The names of a report's numbers: only those have series.
CREATE OR REPLACE FUNCTION number_names(m jsonb) RETURNS text[] LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN ARRAY(SELECT key FROM jsonb_each(m) WHERE jsonb_typeof(value) = 'number' ORDER BY key);
END $$;

-- The number a validation row gives for the searcher's metric; null when it has none.
CREATE OR REPLACE FUNCTION searcher_value(m jsonb, metric text) RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN jsonb_typeof(m->'validation_metrics'->metric) = 'number'
                THEN (m->'validation_metrics'->>metric)::double precision END
$$;

-- common.v1.Metrics of a stored report.
CREATE OR REPLACE FUNCTION metrics_doc(m jsonb, g text, with_batches boolean) RETURNS jsonb LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT jsonb_build_object('avgMetrics', coalesce(m->metrics_key(g), '{}'),
        'batchMetrics', CASE WHEN with_batches AND jsonb_typeof(m->'batch_metrics') = 'array'
                             THEN m->'batch_metrics' ELSE '[]' END)
$$;

-- A report as MetricsWorkload of the API.
CREATE OR REPLACE FUNCTION metrics_workload(x metrics, with_batches boolean) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('endTime', api_time(x.end_time), 'metrics', jsonb_build_object(
            'avgMetrics', coalesce(x.metrics->metrics_key(x.grp), '{}'),
            'batchMetrics', CASE WHEN with_batches AND x.batch_metrics IS NOT NULL THEN x.batch_metrics::jsonb
                                 ELSE '[]' END),
        'numInputs', 0, 'totalBatches', x.steps)
$$;
