-- Times as the API has them.

-- Time as the API writes it: RFC 3339, UTC, microseconds. Not IMMUTABLE, as to_char() is not: only so it is expanded
-- where it is called.
CREATE OR REPLACE FUNCTION api_time(t timestamptz) RETURNS text LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT to_char(t AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- How long something took; NULL where either is. Masters, and the database, have clocks of their own.
CREATE OR REPLACE FUNCTION seconds_between(a timestamptz, b timestamptz) RETURNS double precision
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$ SELECT CASE WHEN b < a THEN 0 ELSE extract(epoch FROM b - a)::float8 END $$;
