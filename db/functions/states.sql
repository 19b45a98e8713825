-- States of trials and experiments. What calls these has their bodies put in when it is planned: indexes on states serve.

-- Nothing of it runs any more; it may be continued. The trigger trials_close_chunks writes them out: a trigger that
-- changes is made anew, which waits for writers.
CREATE OR REPLACE FUNCTION has_ended(p_state text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT p_state IN ('COMPLETED', 'CANCELED', 'ERROR')
$$;

-- Whether it may still run.
CREATE OR REPLACE FUNCTION trial_is_live(p_state text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT NOT has_ended(p_state)
$$;

-- Nor will it: it has ended, or is being deleted.
CREATE OR REPLACE FUNCTION is_terminal(p_state text) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT has_ended(p_state) OR p_state IN ('DELETING', 'DELETED', 'DELETE_FAILED')
$$;
