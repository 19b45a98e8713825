/* What trials that have ended have in common, summed up in blocks (db/functions/trial_blocks.sql).
 */
#ifndef DB_DB_BLOCKS_H
#define DB_DB_BLOCKS_H

#include "db.h"

enum db_blocks_col { BLOCKS_LEFT };
/* Looks for so long through blocks that changed; the row tells how many are left. What anybody is
 * told stays the same. */
void db_blocks_keep(struct db *db, int64_t ms, db_cb *cb, void *arg);

#endif
