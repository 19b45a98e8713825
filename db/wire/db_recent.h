/*
 * Answers to reads that are given again for a moment to who asks the same: a group of 100,000
 * trials, or a chart of 5,000, is looked up once for all who look at it. None is given after
 * anything else than a trial's report or log lines was acknowledged (db_tx_quiet()); what those
 * wrote may be missing from it for some multiple of the time that it took (db.h), but from those
 * that say on which they rest (db_query_lasting()). Private to db/.
 */
#ifndef DB_DB_RECENT_H
#define DB_DB_RECENT_H

#include "db_stmt.h"

struct db_recent;
struct db_recents { /* the newest first */
    struct db_recent *list;
    size_t n, bytes;
};
/* When an answer is asked for, or until when it is recent. */
struct db_recent_at {
    uint64_t ms;      /* of the loop's clock */
    uint64_t changes; /* acknowledged until then; UINT64_MAX: none counts */
    uint64_t validations;
    bool rests_on_validations; /* of an answer */
};

/* Whether something was acknowledged since, or it was too long ago. */
bool db_recent_is_past(const struct db_recent_at *until, const struct db_recent_at *now);
/* Takes s and the rows of r; owns what is made of them, too. */
void db_recent_keep(struct db_recents *all, struct db_stmt *s, struct db_result *r,
                    struct shared_buf *made, const struct db_recent_at *until);
/* NULL: there is none. Borrowed. */
struct db_recent *db_recent_find(const struct db_recents *all, const struct db_stmt *s,
                                 const struct db_recent_at *now);
void db_recent_forget(struct db_recents *all, const struct db_recent_at *now);

struct db_recent *db_recent_ref(struct db_recent *r);
void db_recent_unref(struct db_recent *r); /* NULL ok */
const struct db_result *db_recent_result(const struct db_recent *r);

#endif
