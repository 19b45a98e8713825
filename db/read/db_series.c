#include "db_series.h"

#include "db_sql.h"
#include "db_trial_cols.h"

void db_series_read(struct db *db, const struct db_series *s, db_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(a, s->trial_ids), s->groups);
    db_i64_arg(db_i64_arg(db_i64_arg(a, s->from), s->to), s->buckets);
    db_query(db, sql_series_read, a, cb, arg);
}

void db_series_trials(struct db *db, const char *trial_ids, db_cb *cb, void *arg)
{
    db_query(db,
             "SELECT t.id, t.state, " TRIAL_MEMBERS "FROM " TRIALS_OF_IDS(
                 "ARRAY(SELECT jsonb_array_elements_text($1::jsonb)::integer)") "ORDER BY x.ord",
             db_str_arg(DB_ARGS, trial_ids), cb, arg);
}
