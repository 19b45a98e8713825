-- Access tokens.

-- tokens.v1.TokenInfo of the API.
CREATE OR REPLACE FUNCTION access_token_doc(t access_tokens) RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object('id', t.id, 'userId', t.user_id, 'username', u.username, 'description', t.description,
        'createdAt', api_time(t.created_at), 'expiry', api_time(t.expires_at), 'revokedAt', api_time(t.revoked_at),
        'lastUsedAt', api_time(t.last_used_at), 'tokenType', 'TOKEN_TYPE_ACCESS_TOKEN',
        'active', t.revoked_at IS NULL AND t.expires_at > now())
    FROM users u WHERE u.id = t.user_id
$$;
