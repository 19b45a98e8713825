#include "db_search_read.h"

#include "db_sql.h"

void db_search_log(struct db *db, int64_t exp_id, db_cb *cb, void *arg)
{
    db_query(db, sql_search_log, db_i64_arg(DB_ARGS, exp_id), cb, arg);
}
