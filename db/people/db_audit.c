#include "db_audit.h"

static struct db_args *add_optional(struct db_args *a, int64_t v)
{
    return v ? db_i64_arg(a, v) : db_null_arg(a);
}

void db_audit_write(struct db *db, const struct db_audit_row *row, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_i64_arg(db_i64_arg(db_i64_arg(a, db_epoch(db)), row->n), row->user_id);
    db_str_arg(db_str_arg(db_str_arg(a, row->username), row->address), row->operation);
    db_str_arg(db_str_arg(db_str_arg(a, row->method), row->path), row->detail);
    db_write(
        db,
        "INSERT INTO audit (epoch, n, user_id, username, address, operation, method, path, "
        "detail, status, token_id) VALUES ($1::bigint, $2::bigint, $3::integer, $4, $5, $6, $7, "
        "$8, $9::jsonb, $10::integer, $11::integer) ON CONFLICT DO NOTHING",
        add_optional(add_optional(a, row->status), row->token_id), cb, arg);
}

void db_audit_answered(struct db *db, int64_t n, int status, db_cb *cb, void *arg)
{
    db_write(db,
             "UPDATE audit SET status = $3::integer WHERE epoch = $1::bigint AND n = $2::bigint",
             db_i64_arg(db_i64_arg(db_i64_arg(DB_ARGS, db_epoch(db)), n), status), cb, arg);
}

/* $1 user name, $2 operation, $3 since, $4 and $5 before, $6 at most. */
#define BEFORE "coalesce($4::bigint, 9223372036854775807), coalesce($5::bigint, 0)) "
#define AUDIT_LIST(where, order)                                                                   \
    "SELECT jsonb_build_object('entries', coalesce(jsonb_agg(jsonb_build_object('id', epoch "      \
    "|| '.' || n, 'time', api_time(at), 'userId', user_id, 'username', username, "                 \
    "'tokenId', token_id, 'address', address, 'operation', operation, 'method', method, "          \
    "'path', path, 'detail', detail, 'status', status) ORDER BY x.epoch DESC, x.n DESC), '[]')) "  \
    "FROM (SELECT * FROM audit WHERE " where "AND ($2::text IS NULL OR operation = $2) "           \
    "AND ($3::timestamptz IS NULL OR at >= $3::timestamptz) "                                      \
    "ORDER BY " order "epoch DESC, n DESC LIMIT $6::integer) x"
#define OF_ALL AUDIT_LIST("$1::text IS NULL AND (epoch, n) < (" BEFORE, "")
/* Said as a range, it goes by the index audit_user: PostgreSQL takes one who did little for one of
 * those who fill the log, and would look through all. */
#define OF_USER                                                                                    \
    AUDIT_LIST("username >= $1 AND username <= $1 AND (username, epoch, n) < ($1, " BEFORE,        \
               "username DESC, ")

void db_audit_list(struct db *db, const struct db_audit_filter *f, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_time_arg(db_str_arg(db_str_arg(a, f->username), f->operation), f->since_us);
    add_optional(add_optional(a, f->before_epoch), f->before_n);
    db_query(db, f->username ? OF_USER : OF_ALL, db_i64_arg(a, f->limit), cb, arg);
}

void db_audit_forget(struct db *db, int64_t days, db_cb *cb, void *arg)
{
    db_write(db,
             "DELETE FROM audit WHERE (epoch, n) IN (SELECT epoch, n FROM audit "
             "WHERE at < now() - make_interval(days => $1::integer) LIMIT 5000)",
             db_i64_arg(DB_ARGS, days), cb, arg);
}
