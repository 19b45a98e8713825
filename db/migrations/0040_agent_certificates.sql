-- Agents with a certificate of their own: the tokens by which they join, whom they are, and which
-- certificates count. Of tokens and certificates there are digests only.
CREATE TABLE agent_join_tokens (
    token_sha256 text PRIMARY KEY,
    agent_id text,                -- the only one who may use it; null: any that has not joined
    expires_at timestamptz NOT NULL,
    used_by text,                 -- the agent that joined by it; null: nobody yet
    used_key text                 -- with this key: its repeat is no second use
);
CREATE TABLE agent_identities (
    agent_id text PRIMARY KEY,
    revoked_at timestamptz
);
CREATE TABLE agent_certificates (
    fingerprint text PRIMARY KEY,
    agent_id text NOT NULL REFERENCES agent_identities ON DELETE CASCADE,
    from_at timestamptz NOT NULL,
    until_at timestamptz NOT NULL
);
CREATE INDEX agent_certificates_agent ON agent_certificates (agent_id);

-- Whether agent `name` with this key may join: 'ok', else why not.
CREATE FUNCTION agent_join_judge(t agent_join_tokens, name text, key text) RETURNS text LANGUAGE sql STABLE AS $$
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
CREATE FUNCTION agent_join(token text, name text, key text, print text, since timestamptz, until timestamptz)
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
