-- What lists of the API are cut and filtered by.

-- offset and limit of the SQL lists: a negative offset counts from the end, limit 0 = 100, -1 = all, -2 = none.
CREATE OR REPLACE FUNCTION page_start(total bigint, p_offset bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN p_offset < 0 THEN greatest(total + p_offset, 0) ELSE least(p_offset, total) END
$$;

-- The limit of the above; null: all.
CREATE OR REPLACE FUNCTION page_size(p_limit bigint, p_default bigint) RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE p_limit WHEN 0 THEN p_default WHEN -1 THEN NULL WHEN -2 THEN 0 ELSE greatest(p_limit, 0) END
$$;

-- What finds a part of a text, whatever its letters' case, as LIKE has it.
CREATE OR REPLACE FUNCTION text_pattern(part text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT '%' || replace(replace(replace(lower(part), '\', '\\'), '%', '\%'), '_', '\_') || '%'
$$;
