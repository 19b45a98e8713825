/* What trials that have ended have in common, summed up in blocks (db/functions/trial_blocks.sql).
 */
#ifndef DB_DB_BLOCKS_H
#define DB_DB_BLOCKS_H

#include "db.h"

/* None of these takes longer than 2 s, and what anybody is told stays the same. */

enum db_blocks_next_col { BLOCKS_NEXT };
/* Writes down blocks that nobody did, of some trials from id from on, 0 at first; the row tells
 * from which id to go on, or NULL: that was all. */
void db_blocks_find(struct db *db, int64_t from, db_cb *cb, void *arg);

enum db_blocks_col { BLOCKS_LEFT };
/* Looks for so long through blocks that changed; the row tells how many are left. */
void db_blocks_keep(struct db *db, int64_t ms, db_cb *cb, void *arg);

enum db_blocks_aside_col { BLOCKS_EXPERIMENT, BLOCKS_BLOCK };
/* For when that takes too long: one block, in the row if there is any, is done with as it is; and
 * then looks through that alone. */
void db_blocks_set_aside(struct db *db, db_cb *cb, void *arg);
void db_blocks_keep_aside(struct db *db, int64_t experiment, int64_t block, db_cb *cb, void *arg);

#endif
