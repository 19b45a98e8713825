/* Rebuilding the core: the live rows, in the order that core.h states. */
#include "db_rows.h"

/* Experiments that the core holds: neither ended nor run elsewhere, but for one that is being
 * deleted. */
#define ENDED "('COMPLETED', 'CANCELED', 'ERROR', 'DELETED', 'DELETE_FAILED')"
#define LIVE  "(e.state NOT IN " ENDED " AND NOT (e.unmanaged AND e.state = 'ACTIVE'))"
#define MICROS(t) "(extract(epoch FROM " t ") * 1000000)::bigint"

struct reading {
    const struct db_restore *to;
    int64_t exp_id; /* of the row in hand; 0: none */
    int rc;
    struct det_err *err;
};

static const char *text_or_null(const struct db_result *r, int row, int col)
{
    return db_is_null(r, row, col) ? NULL : db_text(r, row, col);
}

static void on_agents(void *arg, const struct db_result *r)
{
    struct reading *g = arg;
    for (int i = 0; i < db_rows(r) && g->rc == 0; i++) {
        struct row_agent row = {
            .agent_id = db_text(r, i, 0),
            .enabled = db_bool(r, i, 1),
            .draining = db_bool(r, i, 2),
            .slots_disabled = db_text(r, i, 3),
            .slots_forced = db_text(r, i, 4),
        };
        g->rc = g->to->agent(g->to->arg, &row, g->err);
    }
}

static void on_stores(void *arg, const struct db_result *r)
{
    struct reading *g = arg;
    for (int i = 0; i < db_rows(r) && g->rc == 0; i++) {
        struct row_store row = {
            .place = db_text(r, i, 0),
            .id = text_or_null(r, i, 1),
            .known = text_or_null(r, i, 2),
            .made_on = text_or_null(r, i, 3),
            .owner_id = db_i64(r, i, 4),
            .used_us = db_i64(r, i, 5),
        };
        g->rc = g->to->store(g->to->arg, &row, g->err);
    }
}

static void on_experiments(void *arg, const struct db_result *r)
{
    struct reading *g = arg;
    for (int i = 0; i < db_rows(r) && g->rc == 0; i++) {
        struct row_experiment row = {
            .id = db_i64(r, i, 0),
            .job_id = db_text(r, i, 1),
            .owner_id = db_i64(r, i, 2),
            .project_id = db_i64(r, i, 3),
            .parent_id = db_i64(r, i, 4),
            .config = db_text(r, i, 5),
            .start_us = db_i64(r, i, 6),
            .end_us = db_i64(r, i, 8),
            .progress = db_is_null(r, i, 9) ? -1 : db_f64(r, i, 9),
            .resource_pool = db_text(r, i, 10),
            .priority = (int)db_i64(r, i, 11),
            .weight = db_f64(r, i, 12),
            .max_slots = db_is_null(r, i, 13) ? -1 : db_i64(r, i, 13),
            .queue_position = db_f64(r, i, 14),
            .core = db_text(r, i, 15),
        };
        g->exp_id = row.id;
        if (!exp_state_parse(db_text(r, i, 7), &row.state))
            g->rc = det_fail(g->err, DET_ECORRUPT, "experiment %lld has the unknown state %s",
                             (long long)row.id, db_text(r, i, 7));
        else
            g->rc = g->to->experiment(g->to->arg, &row, g->err);
    }
}

static void on_snapshots(void *arg, const struct db_result *r)
{
    struct reading *g = arg;
    for (int i = 0; i < db_rows(r) && g->rc == 0; i++) {
        struct row_search_snapshot row = {db_i64(r, i, 0), db_i64(r, i, 1), db_text(r, i, 2)};
        g->exp_id = row.experiment_id;
        g->rc = g->to->snapshot(g->to->arg, &row, g->err);
    }
}

static void on_events(void *arg, const struct db_result *r)
{
    struct reading *g = arg;
    for (int i = 0; i < db_rows(r) && g->rc == 0; i++) {
        struct row_search_event row = {db_i64(r, i, 0), db_i64(r, i, 1), db_text(r, i, 2)};
        g->exp_id = row.experiment_id;
        g->rc = g->to->event(g->to->arg, &row, g->err);
    }
}

static void on_trials(void *arg, const struct db_result *r)
{
    struct reading *g = arg;
    for (int i = 0; i < db_rows(r) && g->rc == 0; i++) {
        struct row_trial row = {
            .id = db_i64(r, i, 0),
            .experiment_id = db_i64(r, i, 1),
            .request_id = db_text(r, i, 2),
            .task_id = db_text(r, i, 3),
            .hparams = db_text(r, i, 4),
            .seed = db_i64(r, i, 5),
            .start_us = db_i64(r, i, 6),
            .warm_start_checkpoint = text_or_null(r, i, 7),
            .run_id = db_i64(r, i, 9),
            .restarts = db_i64(r, i, 10),
            .end_us = db_i64(r, i, 11),
            .core = db_text(r, i, 12),
            .latest_checkpoint = text_or_null(r, i, 13),
            .latest_steps = db_i64(r, i, 14),
        };
        g->exp_id = row.experiment_id;
        if (!trial_state_parse(db_text(r, i, 8), &row.state))
            g->rc = det_fail(g->err, DET_ECORRUPT, "trial %lld has the unknown state %s",
                             (long long)row.id, db_text(r, i, 8));
        else
            g->rc = g->to->trial(g->to->arg, &row, g->err);
    }
}

static void on_allocations(void *arg, const struct db_result *r)
{
    struct reading *g = arg;
    for (int i = 0; i < db_rows(r) && g->rc == 0; i++) {
        struct row_allocation row = {
            .id = db_text(r, i, 0),
            .task_id = db_text(r, i, 1),
            .experiment_id = db_i64(r, i, 2),
            .trial_id = db_i64(r, i, 3),
            .run_id = db_i64(r, i, 4),
            .kind = db_text(r, i, 5),
            .slots = db_i64(r, i, 6),
            .resource_pool = db_text(r, i, 7),
            .start_us = db_i64(r, i, 8),
            .is_ready = db_bool(r, i, 10),
            .end_us = db_i64(r, i, 11),
            .exit_reason = text_or_null(r, i, 12),
            .status_code = db_is_null(r, i, 13) ? -1 : db_i64(r, i, 13),
            .core = db_text(r, i, 14),
        };
        g->exp_id = row.experiment_id;
        if (!alloc_state_parse(db_text(r, i, 9), &row.state))
            g->rc = det_fail(g->err, DET_ECORRUPT, "allocation %s has the unknown state %s", row.id,
                             db_text(r, i, 9));
        else
            g->rc = g->to->allocation(g->to->arg, &row, g->err);
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

static const struct {
    const char *sql;
    db_cb *cb;
} reads[] = {
    {"SELECT agent_id, enabled, draining, slots_disabled, slots_forced FROM agent_settings "
     "ORDER BY agent_id",
     on_agents},
    {"SELECT place, id, known, made_on, coalesce(owner_id, 0), " MICROS("first_used") " FROM stores "
     "ORDER BY first_used, place",
     on_stores},
    {"SELECT id, job_id, owner_id, project_id, coalesce(parent_id, 0), config, " MICROS(
         "start_time") ", state, "
                       "coalesce(" MICROS("end_time") ", 0), progress, resource_pool, "
                                                      "coalesce(priority, 0), weight, max_slots, "
                                                      "coalesce(queue_position, 0), core FROM "
                                                      "experiments e WHERE " LIVE
                                                      " ORDER BY id",
     on_experiments},
    {"SELECT s.experiment_id, s.seq, s.snapshot FROM search_snapshots s JOIN experiments e "
     "ON e.id = s.experiment_id WHERE " LIVE " ORDER BY 1",
     on_snapshots},
    {"SELECT v.experiment_id, v.seq, v.event FROM search_events v JOIN experiments e ON e.id = "
     "v.experiment_id "
     "WHERE " LIVE " AND v.seq > coalesce((SELECT seq FROM search_snapshots s WHERE "
     "s.experiment_id = e.id), 0) ORDER BY 1, 2",
     on_events},
    {"SELECT t.id, t.experiment_id, t.request_id, t.task_id, t.hparams, t.seed, " MICROS(
         "t.start_time") ", "
                         "t.warm_start_checkpoint, t.state, t.run_id, t.restarts, coalesce(" MICROS(
                             "t.end_time") ", 0), t.core, "
                                           "c.uuid, coalesce(c.steps, 0) FROM trials t JOIN "
                                           "experiments e ON e.id = t.experiment_id "
                                           "LEFT JOIN LATERAL (SELECT uuid, steps FROM checkpoints "
                                           "WHERE trial_id = t.id AND "
                                           "state = 'COMPLETED' ORDER BY steps DESC, report_time "
                                           "DESC LIMIT 1) c ON true "
                                           "WHERE " LIVE " AND NOT e.unmanaged ORDER BY t.id",
     on_trials},
    {"SELECT id, task_id, coalesce(experiment_id, 0), coalesce(trial_id, 0), run_id, kind, slots, "
     "resource_pool, " MICROS("start_time") ", state, is_ready, coalesce(" MICROS(
         "end_time") ", 0), exit_reason, status_code, core "
                     "FROM allocations WHERE state <> 'TERMINATED' ORDER BY start_time, id",
     on_allocations},
};

int db_restore(struct db *db, const struct db_restore *to, int64_t *ret_exp, struct det_err *err)
{
    struct reading g = {.to = to, .err = err};
    *ret_exp = 0;
    for (size_t i = 0; i < sizeof reads / sizeof reads[0] && g.rc == 0; i++) {
        int rc = db_query_now(db, reads[i].sql, NULL, reads[i].cb, &g, err);
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
