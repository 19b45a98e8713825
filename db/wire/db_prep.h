/*
 * The prepared statements of one connection. A text is prepared in the pipeline, right before its
 * first use. A preparation that was aborted with its transaction is tried again by a later use; one
 * that failed is not, so that the statement itself tells why. Private to db/.
 */
#ifndef DB_DB_PREP_H
#define DB_DB_PREP_H

#include "db_stmt.h"

enum db_prep_state { PREP_NONE, PREP_SENT, PREP_READY, PREP_NEVER };
struct db_prep {
    enum db_prep_state state;
    uint64_t segment; /* between two syncs: where it was sent */
    char name[16];
    struct db_result why; /* of PREP_NEVER; rc 0: none */
};
struct map;
struct db_preps {
    struct map *by_text; /* NULL: none yet. Not by address: another text may come to lie there */
    unsigned names;
    uint64_t segment;
};

/* Of this text; made when there is none. Lives until db_preps_finish(). */
struct db_prep *db_prep_of(struct db_preps *ps, const char *sql);
/* Whether a statement sent now may use the name. */
bool db_prep_is_usable(const struct db_preps *ps, const struct db_prep *p);
/* The answer to the preparation: a db_op_cb. */
void db_prep_on_answer(void *arg, const struct db_result *r);
/* The answer to a use: a name that the server forgot, or whose plan went stale, is used no more.
 * What was aborted by its own preparation gets that one's failure. */
void db_prep_on_use(struct db_prep *p, struct db_result *r);
void db_preps_finish(struct db_preps *ps);

#endif
