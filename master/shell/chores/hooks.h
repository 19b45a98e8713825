/*
 * Webhooks: sends what waits in the database to its receivers, and holds lines of logs against
 * the triggers that are for those. An event is in the database from the transaction of what it
 * tells of until its receiver has answered with a 2xx, so it comes at least once, also after a
 * kill -9: its event_id is the same each time. Of each receiver one POST is under way, so one
 * that hangs holds up its own events alone; the loop waits for nobody.
 */
#ifndef SHELL_HOOKS_H
#define SHELL_HOOKS_H

#include "db_logs.h"
#include "hook_post.h"

struct shell;
struct hooks;
struct hooks *hooks_create(struct shell *sh);
void hooks_destroy(struct hooks *h); /* NULL ok; while the database is still open */
/* Webhooks were made. */
void hooks_changed(struct hooks *h);
/* What is under way to it ends. */
void hooks_deleted(struct hooks *h, int64_t webhook);
/* Sends it now, beside what waits. done comes in any case, maybe at once; h may be NULL. */
void hooks_try(struct hooks *h, const char *url, const struct hook_event *e, hook_post_done *done,
               void *arg);
/* Where receivers may be; h may be NULL. */
const struct webhook_networks *hooks_networks(const struct hooks *h);
/* Lines of one task. cb comes once for each line that is told of, which the result counts: with 0
 * once it will be told, or was. Bounds as those of logpolicy.h. */
size_t hooks_match(struct hooks *h, const struct db_log_line *lines, size_t n, db_done_cb *cb,
                   void *arg);

#endif
