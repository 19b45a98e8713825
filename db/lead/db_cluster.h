/* The cluster's identity and secrets, and the numbers of the leader's batches. */
#ifndef DB_DB_CLUSTER_H
#define DB_DB_CLUSTER_H

#include "db.h"
#include "db_done.h"

struct db_cluster {
    char cluster_id[37];
    char token_key[65];   /* hex */
    char agent_token[65]; /* hex */
};
/* Blocking, before db_start. */
DET_MUST int db_cluster_read(struct db *db, struct db_cluster *ret, struct det_err *err);
/* Blocking, before db_start: stores the first admin password when admin has none; *ret_set says so.
 */
DET_MUST int db_admin_password_init(struct db *db, const char *argon2, bool *ret_set,
                                    struct det_err *err);
DET_MUST int db_admin_has_password(struct db *db, bool *ret, struct det_err *err);

/* First statement of a unit that must be written exactly once: batch `number` of this epoch, from
 * 1, without a gap. A unit whose commit was not heard of is sent again with its number. */
void db_begin_batch(struct db_tx *tx, int64_t epoch, int64_t number);
/* From here on in the unit, which goes apart, a statement may take no longer than that. */
void db_limit_statements(struct db_tx *tx, int64_t ms);
/* The unit failed because it is committed already. */
bool db_batch_is_done(const struct db_result *r);

#endif
