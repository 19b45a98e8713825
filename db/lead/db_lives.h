/* The line of leaderships that this database comes from, and what came of other lives (see the
 * migration that made the tables). */
#ifndef DB_DB_LIVES_H
#define DB_DB_LIVES_H

#include "db.h"

struct db_life {
    int64_t epoch, last_batch; /* INT64_MAX: it leads */
    char nonce[37];
    bool is_new, is_chosen;
};
/* Blocking, before db_start: all of them, by epoch. *ret is the caller's to free. */
DET_MUST int db_lives_read(struct db *db, struct db_life **ret, size_t *ret_n, struct det_err *err);

/* Keeps something of another life aside, but never more than 10,000 of them. body: UTF-8. */
struct db_stray {
    const char *agent_id, *alloc_id, *what, *body;
    bool unless_known; /* only if the allocation was never one of this database */
};
void db_stray_keep(struct db *db, const struct db_stray *s, db_cb *cb, void *arg);
/* One row: the document of what is kept, newest first, without bodies. */
void db_strays(struct db *db, int64_t limit, db_cb *cb, void *arg);
/* Of one allocation, or (NULL) all; one row: how many there were. */
void db_strays_drop(struct db *db, const char *alloc_id, db_cb *cb, void *arg);
/* One row: the lives as a JSON array, oldest first; the newest 100. */
void db_lives_list(struct db *db, db_cb *cb, void *arg);

/* Blocking, with a connection of its own: the next leader begins a new life. *ret_is_led: one leads
 * now, and has to end first. */
DET_MUST int db_new_life(const char *conninfo, bool *ret_is_led, struct det_err *err);

#endif
