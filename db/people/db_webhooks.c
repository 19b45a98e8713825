#include "db_webhooks.h"

#define TRIGGER_DOC                                                                                \
    "jsonb_build_object('id', t.id, 'webhookId', t.webhook_id, 'triggerType', "                    \
    "'TRIGGER_TYPE_' || t.trigger_type, 'condition', t.condition)"
#define WEBHOOK_DOC(triggers)                                                                      \
    "jsonb_build_object('id', w.id, 'url', w.url, 'webhookType', 'WEBHOOK_TYPE_' || "              \
    "w.webhook_type, 'triggers', (SELECT coalesce(jsonb_agg(" TRIGGER_DOC " ORDER BY t.id), "      \
    "'[]') FROM " triggers " t WHERE t.webhook_id = w.id), 'waiting', (SELECT count(*) FROM "      \
    "webhook_events e WHERE e.webhook_id = w.id), 'lost', w.lost, 'failures', w.failures, "        \
    "'lastError', w.error)"

void db_webhook_list(struct db *db, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT jsonb_build_object('webhooks', coalesce(jsonb_agg(" WEBHOOK_DOC(
                 "webhook_triggers") " ORDER BY w.id), '[]')) FROM webhooks w",
             DB_ARGS, cb, arg);
}

void db_webhook_create(struct db *db, const struct db_webhook *w, int most, db_cb *cb, void *arg)
{
    struct db_args *a = db_str_arg(db_str_arg(db_str_arg(DB_ARGS, w->url), w->type), w->triggers);
    db_write(db,
             "WITH w AS (INSERT INTO webhooks (url, webhook_type, user_id) SELECT $1, $2, "
             "$4::integer WHERE (SELECT count(*) FROM webhooks) < $5::integer RETURNING *), "
             "made AS (INSERT INTO webhook_triggers (webhook_id, trigger_type, condition) "
             "SELECT w.id, x->>'triggerType', x->'condition' FROM w, "
             "jsonb_array_elements($3::jsonb) x RETURNING *) "
             "SELECT jsonb_build_object('webhook', " WEBHOOK_DOC("made") ") FROM w",
             db_i64_arg(db_i64_arg(a, w->user_id), most), cb, arg);
}

void db_webhook_delete(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_write(db,
             "WITH told AS (DELETE FROM webhook_events WHERE webhook_id = $1::integer) "
             "DELETE FROM webhooks WHERE id = $1::integer RETURNING id",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_webhook_find(struct db *db, int64_t id, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT w.url, w.webhook_type, (SELECT webhook_key FROM cluster) FROM webhooks w "
             "WHERE w.id = $1::integer",
             db_i64_arg(DB_ARGS, id), cb, arg);
}

void db_webhook_key(struct db *db, db_cb *cb, void *arg)
{
    db_query(db, "SELECT jsonb_build_object('signingKey', webhook_key) FROM cluster", DB_ARGS, cb,
             arg);
}

void db_webhook_log_triggers(struct db *db, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT id, condition->>'regex' FROM webhook_triggers WHERE trigger_type = "
             "'TASK_LOG' ORDER BY id",
             DB_ARGS, cb, arg);
}

void db_webhook_log_hit(struct db *db, const struct db_log_hit *h, db_cb *cb, void *arg)
{
    struct db_args *a = db_i64_arg(DB_ARGS, h->trigger_id);
    db_write(db, "SELECT tell_log_hit($1::integer, $2, $3, $4)",
             db_str_arg(db_str_arg(db_str_arg(a, h->task_id), h->agent_id), h->line), cb, arg);
}

void db_webhook_due(struct db *db, const char *busy, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT d.*, (SELECT webhook_key FROM cluster) FROM "
             "due_webhook_events($1::integer[]) d",
             db_str_arg(DB_ARGS, busy), cb, arg);
}

void db_webhook_taken(struct db *db, int64_t event, int64_t webhook, db_cb *cb, void *arg)
{
    db_write_quiet(db,
                   "WITH gone AS (DELETE FROM webhook_events WHERE id = $1::bigint) "
                   "UPDATE webhooks SET failures = 0, paused_until = NULL, error = '' "
                   "WHERE id = $2::integer AND failures > 0",
                   db_i64_arg(db_i64_arg(DB_ARGS, event), webhook), cb, arg);
}

void db_webhook_failed(struct db *db, int64_t event, int64_t webhook, const char *why, db_cb *cb,
                       void *arg)
{
    db_write_quiet(db, "SELECT webhook_failed($1::bigint, $2::integer, $3)",
                   db_str_arg(db_i64_arg(db_i64_arg(DB_ARGS, event), webhook), why), cb, arg);
}

void db_webhook_sweep(struct db *db, int most, db_cb *cb, void *arg)
{
    db_write_quiet(db, "SELECT sweep_webhooks($1::integer)", db_i64_arg(DB_ARGS, most), cb, arg);
}
