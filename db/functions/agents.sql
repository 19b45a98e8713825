-- Agents that join with a token and are known by their certificate.

-- Whether agent `name` with this key may join: 'ok', else why not.
CREATE OR REPLACE FUNCTION agent_join_judge(t agent_join_tokens, name text, key text) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT CASE
        WHEN t.token_sha256 IS NULL THEN 'unknown'
        WHEN t.used_by IS NOT NULL AND (t.used_by <> name OR t.used_key <> key) THEN 'used'
        WHEN t.expires_at <= now() THEN 'expired'
        WHEN t.agent_id <> name THEN 'other'
        WHEN t.agent_id IS NULL AND t.used_by IS NULL AND EXISTS (
            SELECT FROM agent_identities i JOIN agent_certificates c USING (agent_id)
            WHERE i.agent_id = name AND i.revoked_at IS NULL AND c.until_at > now()) THEN 'joined'
        ELSE 'ok'
    END
$$;

-- Uses the token: from then on this certificate is the agent's only one. The same answers.
CREATE OR REPLACE FUNCTION agent_join(token text, name text, key text, print text, since timestamptz, until timestamptz)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    t agent_join_tokens;
    verdict text;
BEGIN
    SELECT * INTO t FROM agent_join_tokens WHERE token_sha256 = token;
    verdict := agent_join_judge(t, name, key);
    IF verdict = 'ok' THEN
        UPDATE agent_join_tokens SET used_by = name, used_key = key WHERE token_sha256 = token;
        INSERT INTO agent_identities VALUES (name, NULL)
            ON CONFLICT (agent_id) DO UPDATE SET revoked_at = NULL;
        DELETE FROM agent_certificates WHERE agent_id = name;
        INSERT INTO agent_certificates VALUES (print, name, since, until);
    END IF;
    RETURN verdict;
END
$$;
