/* What checkpoint collection reads. */
#ifndef DB_DB_GC_H
#define DB_DB_GC_H

#include "db.h"

enum db_gc_col { GC_OWNER, GC_JOB, GC_CONFIG, GC_UUIDS };
/* One row: of the experiment, and as a JSON array the COMPLETED checkpoints that its policy
 * (config's checkpoint_storage.save_*) does not keep. Kept are: each trial's latest and its best,
 * the experiment's best, and any that another experiment's trial starts from. */
void db_gc_unwanted(struct db *db, int64_t exp_id, db_cb *cb, void *arg);

/* Ids of the finished experiments that still have COMPLETED checkpoints and no collection under way:
 * the caller's, to ask db_gc_unwanted about each. */
void db_gc_candidates(struct db *db, db_cb *cb, void *arg);

#endif
