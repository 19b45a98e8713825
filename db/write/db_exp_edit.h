/* What people change in an experiment beside its life: words, labels, shelf, policy, state of
 * deletion. */
#ifndef DB_DB_EXP_EDIT_H
#define DB_DB_EXP_EDIT_H

#include "db.h"

/* NULL: left alone. */
struct db_exp_edit {
    const char *name, *description, *notes;
    const char *labels;    /* JSON array of strings */
    const char *storage;   /* JSON object merged into config's checkpoint_storage */
    const char *resources; /* JSON object merged into config's resources */
};
/* First row: the id; none when there is no such experiment. Keeps the stored configuration in step.
 */
void db_exp_edit(struct db *db, int64_t id, const struct db_exp_edit *e, db_cb *cb, void *arg);
/* First row: state, whether it was archived before; changes it only when the state is terminal. */
void db_exp_archive(struct db *db, int64_t id, bool archive, db_cb *cb, void *arg);
/* First row: {"labels"}; idempotent. */
void db_exp_label(struct db *db, int64_t id, const char *label, bool add, db_cb *cb, void *arg);

#endif
