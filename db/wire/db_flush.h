/*
 * Waits until what was committed is on disk, on a session of its own, so that the writing session
 * goes on with the next group meanwhile (db_group.h says which groups). That one commits without
 * waiting (synchronous_commit off); a commit here that does wait covers all the log that was
 * written before it. Only the answer to this commit's end counts. Private to db/.
 */
#ifndef DB_DB_FLUSH_H
#define DB_DB_FLUSH_H

#include "db_conn.h"

struct db_tx;
struct db_flush {
    struct db_conn *conn;
    struct db_tx *waiting, **waiting_end; /* committed after asking; in order */
    struct db_tx *asked;                  /* what the answer under way is for */
    bool ok;                              /* the statement of it */
    void (*on_flushed)(void *arg, struct db_tx *list, bool ok); /* takes the list; ok: it is on
                                                                 * disk */
    void *arg;
};
/* Takes the list of what was just committed. on_flushed may come from inside when conn is down. */
bool db_flush_is_idle(const struct db_flush *f); /* nothing is waited for */
void db_flush_push(struct db_flush *f, struct db_tx *list);

#endif
