#include "db_timeline.h"

#include "json.h"

#include <string.h>

static const char insert[] =
    "INSERT INTO trial_timeline (trial_id, at_us, run_id, node, kind, duration_us, detail) "
    "SELECT t, a, r, n, k, d, x FROM json_to_recordset($1::json) AS "
    "v(t integer, a bigint, r integer, n integer, k text, d bigint, x text) ON CONFLICT DO NOTHING";

static json_t *row_json(const struct row_timeline *r)
{
    json_t *j = json_make("{s:I, s:I, s:I, s:i, s:I}", "t", (json_int_t)r->trial_id, "a",
                          (json_int_t)r->at_us, "r", (json_int_t)r->run_id, "n", r->node, "d",
                          (json_int_t)r->duration_us);
    json_set(j, "k", json_lossy(r->kind, strlen(r->kind)));
    json_set(j, "x", json_lossy(r->detail, strlen(r->detail)));
    return j;
}

void db_save_timeline(struct db_tx *tx, const struct row_timeline *rows, size_t n)
{
    JSON_OWN all = json_array();
    for (size_t i = 0; i < n; i++)
        json_array_append_new(all, row_json(&rows[i]));
    det_cleanup(freep) char *text = json_text(all);
    db_tx_add(tx, insert, db_str_arg(DB_ARGS, text));
}

void db_timeline_read(struct db *db, int64_t trial_id, db_cb *cb, void *arg)
{
    db_query(
        db,
        "SELECT api_time(to_timestamp(l.at_us / 1e6)), l.at_us, l.run_id, l.node, l.kind, "
        "l.duration_us, l.detail FROM trials t LEFT JOIN trial_timeline l ON l.trial_id = t.id "
        "WHERE t.id = $1::bigint ORDER BY l.at_us LIMIT 10000",
        db_i64_arg(DB_ARGS, trial_id), cb, arg);
}
