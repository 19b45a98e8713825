/* Rebuilding the core: the live rows, in the order that core.h states. */
#include "db_rows.h"
#include "db_rowsql.h"

/* Experiments that the core holds: neither ended nor run elsewhere, but for one that is being
 * deleted. */
#define LIVE                                                                                       \
    "(NOT is_terminal(state) OR state = 'DELETING') AND NOT (unmanaged AND state = 'ACTIVE')"

struct reading {
    enum row_kind kind;
    db_row_cb *cb;
    void *arg;
    int64_t exp_id; /* whose row is in hand */
    int rc;
    struct det_err *err;
};

static void on_rows(void *arg, const struct db_result *r)
{
    struct reading *g = arg;
    for (int i = 0; i < db_rows(r) && g->rc == 0; i++) {
        union row_any row = {0};
        g->rc = db_rowsql_read(r, i, g->kind, &row, g->err);
        g->exp_id = rowtable_exp_id(g->kind, &row);
        if (g->rc == 0)
            g->rc = g->cb(g->arg, g->kind, &row, g->err);
    }
}

static void on_ids(void *arg, const struct db_result *r)
{
    int64_t *ids = arg;
    ids[0] = db_i64(r, 0, 0);
    ids[1] = db_i64(r, 0, 1);
}

int db_restore_ids(struct db *db, int64_t *ret_exp, int64_t *ret_trial, struct det_err *err)
{
    int64_t ids[2] = {0, 0};
    int rc =
        db_query_now(db,
                     "SELECT greatest((SELECT max(id) FROM experiments), "
                     "(SELECT (value->>'exp')::bigint FROM settings WHERE key = 'last_ids')), "
                     "greatest((SELECT max(id) FROM trials), "
                     "(SELECT (value->>'trial')::bigint FROM settings WHERE key = 'last_ids'))",
                     NULL, on_ids, ids, err);
    *ret_exp = ids[0];
    *ret_trial = ids[1];
    return rc;
}

static struct db_rowsql reads[ROW_KIND_COUNT] = {
    [ROW_AGENT] = {.text = "SELECT @reads FROM agent_settings ORDER BY agent_id"},
    [ROW_STORE] = {.text = "SELECT @reads FROM stores ORDER BY first_used, place"},
    [ROW_EXPERIMENT] = {.text = "SELECT @reads FROM experiments WHERE " LIVE " ORDER BY id"},
    [ROW_SEARCH_SNAPSHOT] = {.text = "SELECT @reads FROM search_snapshots WHERE experiment_id IN "
                                     "(SELECT id FROM experiments WHERE " LIVE ") ORDER BY 1"},
    [ROW_SEARCH_EVENT] = {.text = "SELECT @reads FROM search_events v WHERE experiment_id IN "
                                  "(SELECT id FROM experiments WHERE " LIVE ") AND seq > "
                                  "coalesce((SELECT s.seq FROM search_snapshots s WHERE "
                                  "s.experiment_id = v.experiment_id), 0) ORDER BY 1, 2"},
    [ROW_TRIAL] = {.text = "SELECT @reads FROM trials t LEFT JOIN LATERAL (SELECT uuid, steps FROM "
                           "checkpoints WHERE trial_id = t.id AND state = 'COMPLETED' ORDER BY "
                           "steps DESC, report_time DESC LIMIT 1) c(latest_checkpoint, "
                           "latest_steps) ON true WHERE experiment_id IN (SELECT id FROM "
                           "experiments WHERE " LIVE " AND NOT unmanaged AND state <> 'DELETING') "
                           "ORDER BY id"}, /* of what is being deleted some may be gone already */
    [ROW_ALLOCATION] = {.text = "SELECT @reads FROM allocations WHERE state <> 'TERMINATED' "
                                "ORDER BY start_time, id"},
};

int db_restore(struct db *db, db_row_cb *cb, void *arg, int64_t *ret_exp, struct det_err *err)
{
    struct reading g = {.cb = cb, .arg = arg, .err = err};
    *ret_exp = 0;
    for (; g.kind < ROW_KIND_COUNT && g.rc == 0; g.kind++) {
        reads[g.kind].kind = g.kind;
        int rc = db_query_now(db, db_rowsql(&reads[g.kind]), NULL, on_rows, &g, err);
        if (rc < 0)
            return rc;
    }
    *ret_exp = g.rc < 0 ? g.exp_id : 0;
    return g.rc;
}

int db_park_now(struct db *db, int64_t exp_id, struct det_err *err)
{
    return db_query_now(db, "SELECT park($1::integer, 0, true)", db_i64_arg(DB_ARGS, exp_id), NULL,
                        NULL, err);
}
