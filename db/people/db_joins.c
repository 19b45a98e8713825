#include "db_joins.h"

void db_join_token_create(struct db *db, const char *sha256, const char *agent_id, int64_t life_s,
                          db_cb *cb, void *arg)
{
    db_write(
        db,
        "WITH old AS (DELETE FROM agent_join_tokens WHERE expires_at < now() - interval '30 "
        "days') INSERT INTO agent_join_tokens (token_sha256, agent_id, expires_at) VALUES ($1, "
        "$2, now() + make_interval(secs => $3::bigint)) RETURNING api_time(expires_at)",
        db_i64_arg(db_str_arg(db_str_arg(DB_ARGS, sha256), agent_id), life_s), cb, arg);
}

static struct db_args *add_joiner(struct db_args *a, const struct db_join *j)
{
    return db_str_arg(db_str_arg(db_str_arg(a, j->token_sha256), j->agent_id), j->key);
}

/* What agent_join_judge() says, as the verdict's number; one that is new here lets nobody in. */
#define VERDICT(words)                                                                             \
    "SELECT coalesce(array_position(ARRAY['ok', 'unknown', 'used', 'expired', 'other', "           \
    "'joined'], " words ") - 1, 1)"

void db_join_look(struct db *db, const struct db_join *j, db_cb *cb, void *arg)
{
    db_query(db,
             VERDICT("(SELECT agent_join_judge(t, $2, $3) FROM agent_join_tokens t WHERE "
                     "t.token_sha256 = $1)"),
             add_joiner(DB_ARGS, j), cb, arg);
}

void db_join(struct db *db, const struct db_join *j, db_cb *cb, void *arg)
{
    struct db_args *a = db_str_arg(add_joiner(DB_ARGS, j), j->fingerprint);
    db_write(db, VERDICT("agent_join($1, $2, $3, $4, $5::timestamptz, $6::timestamptz)"),
             db_time_arg(db_time_arg(a, j->from_us), j->until_us), cb, arg);
}

void db_join_renew(struct db *db, const struct db_join *j, db_cb *cb, void *arg)
{
    struct db_args *a = db_str_arg(db_str_arg(DB_ARGS, j->agent_id), j->fingerprint);
    db_write(
        db,
        "WITH old AS (DELETE FROM agent_certificates WHERE agent_id = $1 AND until_at < now()) "
        "INSERT INTO agent_certificates (fingerprint, agent_id, from_at, until_at) SELECT $2, "
        "i.agent_id, $3::timestamptz, $4::timestamptz FROM agent_identities i WHERE i.agent_id "
        "= $1 AND i.revoked_at IS NULL",
        db_time_arg(db_time_arg(a, j->from_us), j->until_us), cb, arg);
}

void db_join_revoke(struct db *db, const char *agent_id, db_cb *cb, void *arg)
{
    db_write(db,
             "INSERT INTO agent_identities (agent_id, revoked_at) VALUES ($1, now()) ON CONFLICT "
             "(agent_id) DO UPDATE SET revoked_at = coalesce(agent_identities.revoked_at, now())",
             db_str_arg(DB_ARGS, agent_id), cb, arg);
}

int db_joins_read(struct db *db, db_cb *cb, void *arg, struct det_err *err)
{
    return db_query_now(db,
                        "SELECT i.agent_id, i.revoked_at IS NOT NULL, c.fingerprint, extract(epoch "
                        "FROM c.from_at)::bigint, extract(epoch FROM c.until_at)::bigint FROM "
                        "agent_identities i LEFT JOIN agent_certificates c USING (agent_id)",
                        NULL, cb, arg, err);
}
