#include "db_blocks.h"

void db_blocks_keep(struct db *db, int64_t ms, db_cb *cb, void *arg)
{
    db_write_quiet(db, "SELECT keep_trial_blocks($1::integer)", db_i64_arg(DB_ARGS, ms), cb, arg);
}
