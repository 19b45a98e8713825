/* Checkpoints that lie in a store and that no row knows (table left_behind, see its migration). */
#ifndef DB_DB_LEFT_H
#define DB_DB_LEFT_H

#include "db.h"

/* A store is to be looked through; what was known of an earlier look is forgotten. One row: as
 * whose an agent shall look; none: no experiment that is there has used it. */
enum db_look_col { LOOK_EXP, LOOK_OWNER, LOOK_JOB, LOOK_CONFIG };
void db_left_look(struct db *db, const char *place, db_cb *cb, void *arg);
/* found: JSON array of {"uuid", "aside", "modified", "uid", "taskId", "metadata", "resources":
 * {path: bytes}}, by a task of this experiment; done: these were all. First row: false: it is not
 * the store of this experiment, or nobody wants to know. */
void db_left_note(struct db *db, int64_t exp_id, const char *place, const char *found, bool done,
                  db_cb *cb, void *arg);
/* One row: {"place", "askedAt", "doneAt", "checkpoints"}; null: nobody has looked yet. */
void db_left_list(struct db *db, const char *place, db_cb *cb, void *arg);

struct db_adoption {
    const char *uuid;
    int64_t trial_id; /* 0: the one whose task has written it */
    bool remove;      /* it is on its way out at once */
    int64_t rest_s;   /* in quarantine, then */
};
/* One row. WHY "": done. */
enum db_adopt_col { ADOPT_WHY, ADOPT_EXP };
void db_left_adopt(struct db *db, const struct db_adoption *a, db_cb *cb, void *arg);

#endif
