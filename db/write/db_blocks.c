#include "db_blocks.h"

/* Far more than the looks take by what they are bounded to: the writes behind one wait no longer.
 */
enum { LIMIT_MS = 2000 };

static void write_limited(struct db *db, const char *sql, const struct db_args *args, db_cb *cb,
                          void *arg)
{
    struct db_tx *tx = db_tx_begin(db);
    db_tx_apart(tx);
    db_tx_add(tx, "SELECT set_config('statement_timeout', $1, true)",
              db_i64_arg(DB_ARGS, LIMIT_MS));
    db_tx_add(tx, sql, args);
    db_tx_quiet(tx);
    db_tx_commit(tx, cb, arg);
}

void db_blocks_find(struct db *db, int64_t from, db_cb *cb, void *arg)
{
    write_limited(db, "SELECT find_trial_blocks($1::bigint)", db_i64_arg(DB_ARGS, from), cb, arg);
}

void db_blocks_keep(struct db *db, int64_t ms, db_cb *cb, void *arg)
{
    write_limited(db, "SELECT keep_trial_blocks($1::integer)", db_i64_arg(DB_ARGS, ms), cb, arg);
}

void db_blocks_set_aside(struct db *db, db_cb *cb, void *arg)
{
    write_limited(db, "SELECT experiment, aside FROM set_trial_block_aside()", DB_ARGS, cb, arg);
}

void db_blocks_keep_aside(struct db *db, int64_t experiment, int64_t block, db_cb *cb, void *arg)
{
    write_limited(db, "SELECT keep_trial_block_aside($1::integer, $2::integer)",
                  db_i64_arg(db_i64_arg(DB_ARGS, experiment), block), cb, arg);
}
