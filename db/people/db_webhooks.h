/* Webhooks, and the events that wait for their receivers (db/functions/webhooks.sql). */
#ifndef DB_DB_WEBHOOKS_H
#define DB_DB_WEBHOOKS_H

#include "db.h"

/* {"webhooks"}, by id. */
void db_webhook_list(struct db *db, db_cb *cb, void *arg);
/* type and the triggers' without their prefixes; triggers: a JSON list of {triggerType, condition}.
 * {"webhook"}; no row: there are `most` already. */
struct db_webhook {
    const char *url, *type, *triggers;
    int64_t user_id;
};
void db_webhook_create(struct db *db, const struct db_webhook *w, int most, db_cb *cb, void *arg);
/* A row if it was there; its events are gone with it. */
void db_webhook_delete(struct db *db, int64_t id, db_cb *cb, void *arg);
/* url, type; no row: no such webhook. */
void db_webhook_find(struct db *db, int64_t id, db_cb *cb, void *arg);
/* The key that signs. */
void db_webhook_key(struct db *db, db_cb *cb, void *arg);

/* Rows of {trigger's id, regular expression}: what logs are held against. */
void db_webhook_log_triggers(struct db *db, db_cb *cb, void *arg);
struct db_log_hit {
    int64_t trigger_id;
    const char *task_id, *agent_id, *line; /* agent_id may be NULL; line is UTF-8 */
};
/* Safe to repeat: a task is told of once. */
void db_webhook_log_hit(struct db *db, const struct db_log_hit *h, db_cb *cb, void *arg);

enum db_due_col { DUE_EVENT, DUE_WEBHOOK, DUE_URL, DUE_TYPE, DUE_PAYLOAD, DUE_KEY };
/* The next event of each webhook but those of busy ("{1,2}"). */
void db_webhook_due(struct db *db, const char *busy, db_cb *cb, void *arg);
void db_webhook_taken(struct db *db, int64_t event, int64_t webhook, db_cb *cb, void *arg);
/* True in the one row: the event is given up. */
void db_webhook_failed(struct db *db, int64_t event, int64_t webhook, const char *why, db_cb *cb,
                       void *arg);
/* Keeps `most` events of each webhook; how many older ones were given up. */
void db_webhook_sweep(struct db *db, int most, db_cb *cb, void *arg);

#endif
