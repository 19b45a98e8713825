-- Hyperparameters that experiments are found and sorted by.

-- NaN is less, more and equal to nothing.
CREATE OR REPLACE FUNCTION search_number(v jsonb) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE jsonb_typeof(v) WHEN 'number' THEN v::float8
        WHEN 'string' THEN CASE v#>>'{}' WHEN 'Infinity' THEN 'Infinity'::float8 WHEN '-Infinity' THEN '-Infinity'::float8 END END
$$;

-- Whether a value fits a condition. In plpgsql: plain SQL that is not written into its caller's plan begins one at each call.
CREATE OR REPLACE FUNCTION value_fits(x jsonb, op text, v jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN CASE op WHEN '=' THEN x = v OR x#>>'{}' = v#>>'{}'
        WHEN 'contains' THEN lower(x#>>'{}') LIKE text_pattern(v#>>'{}')
        WHEN '<' THEN search_number(x) < search_number(v) WHEN '<=' THEN search_number(x) <= search_number(v)
        WHEN '>' THEN search_number(x) > search_number(v) WHEN '>=' THEN search_number(x) >= search_number(v) END;
END $$;

-- A tree's value by its name with dots; a name of its own may have dots, too.
CREATE OR REPLACE FUNCTION hp_at(tree jsonb, name text) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT nullif(coalesce(tree->name, tree#>string_to_array(name, '.')), 'null')
$$;

-- What a configuration says of one; a map of others is none.
CREATE OR REPLACE FUNCTION hp_spec(config jsonb, name text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    x jsonb := hp_at(config->'hyperparameters', name);
BEGIN
    RETURN CASE WHEN jsonb_typeof(x) = 'object' AND jsonb_typeof(x->'type') IS DISTINCT FROM 'string' THEN NULL ELSE x END;
END $$;

-- An end of a range; of logarithms the value that it is of.
CREATE OR REPLACE FUNCTION hp_end(spec jsonb, which text) RETURNS double precision LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    x float8 := search_number(spec->which);
    base float8 := coalesce(search_number(spec->'base'), 10);
BEGIN
    IF spec->>'type' <> 'log' OR x IS NULL THEN
        RETURN x;
    ELSIF base <= 0 OR abs(x * log(base)) > 300 THEN
        RETURN NULL;
    END IF;
    RETURN power(base, x);
END $$;

-- Whether its value fits, or of a search one of its values, or a part of its range.
CREATE OR REPLACE FUNCTION hp_fits(spec jsonb, op text, v jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    kind text := CASE WHEN jsonb_typeof(spec) = 'object' THEN spec->>'type' END;
    n float8 := search_number(v);
BEGIN
    IF kind IN ('int', 'double', 'log') THEN
        RETURN CASE op WHEN '=' THEN n BETWEEN hp_end(spec, 'minval') AND hp_end(spec, 'maxval')
            WHEN '<' THEN hp_end(spec, 'minval') < n WHEN '<=' THEN hp_end(spec, 'minval') <= n
            WHEN '>' THEN hp_end(spec, 'maxval') > n WHEN '>=' THEN hp_end(spec, 'maxval') >= n END;
    ELSIF kind = 'categorical' AND jsonb_typeof(spec->'vals') = 'array' THEN
        RETURN EXISTS (SELECT FROM jsonb_array_elements(spec->'vals') x WHERE value_fits(x, op, v));
    END IF;
    RETURN value_fits(CASE kind WHEN 'const' THEN spec->'val' ELSE spec END, op, v);
END $$;

-- What is sorted by: as the best trial had it, else its one value, its first or the low end.
CREATE OR REPLACE FUNCTION hp_shown(hparams jsonb, config jsonb, name text) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    x jsonb := hp_at(hparams, name);
    spec jsonb := CASE WHEN x IS NULL THEN hp_spec(config, name) END;
BEGIN
    RETURN CASE WHEN x IS NOT NULL THEN x WHEN jsonb_typeof(spec) <> 'object' THEN spec
        WHEN spec->>'type' = 'categorical' THEN spec->'vals'->0 WHEN spec->>'type' = 'const' THEN spec->'val'
        ELSE to_jsonb(hp_end(spec, 'minval')) END;
END $$;
