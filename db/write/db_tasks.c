#include "db_tasks.h"

void db_task_start_row(struct db *db, int64_t exp_id, int64_t owner_id, db_cb *cb, void *arg)
{
    db_query(
        db,
        "SELECT g.uid, g.gid, g.user_name, (SELECT CASE WHEN length(e.model_def) <= 65536 THEN "
        "translate(encode(e.model_def, 'base64'), E'\\n', '') END FROM experiments e "
        "WHERE e.id = $1::integer) FROM (SELECT 1) one LEFT JOIN agent_users g ON "
        "g.user_id = $2::integer",
        db_i64_arg(db_i64_arg(DB_ARGS, exp_id), owner_id), cb, arg);
}
