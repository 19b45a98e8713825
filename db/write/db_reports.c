#include "db_reports.h"

#include "db_call.h"
#include "db_sql.h"

#include <string.h>

static int judge_metrics(const struct db_result *r, struct det_err *err)
{
    const char *said = db_rows(r) == 1 ? db_text(r, 0, 0) : "unknown";
    if (!*said)
        return 0;
    if (!strcmp(said, "stale"))
        return det_fail(err, DET_ESTALE,
                        "invalid run id: the report belongs to a run of the trial "
                        "that has ended");
    if (!strncmp(said, "overlap ", 8))
        return det_fail(err, DET_EINVAL,
                        "metric %s was already reported for this step with another "
                        "value",
                        said + 8);
    return det_fail(err, DET_ENOENT, "trial not found");
}

void db_report_metrics(struct db *db, const struct db_metrics_report *r, db_done_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_i64_arg(db_i64_arg(a, r->trial_id), r->run_id);
    db_i64_arg(db_str_arg(a, r->group), r->steps);
    db_time_arg(db_str_arg(a, r->metrics), r->time_us);
    db_text_arg(a, r->batches, r->batches_len);
    struct db_tx *tx = db_tx_begin(db);
    db_tx_add(tx,
              "SELECT report_metrics($1::integer, $2::integer, $3, $4::integer, $5::jsonb, "
              "$6::timestamptz, $7)",
              a);
    db_tx_many(tx,
               "SELECT * FROM report_metrics_many($1::text[]::integer[], $2::text[]::integer[], "
               "$3::text[], $4::text[]::integer[], $5::text[], $6::text[]::timestamptz[], "
               "$7::text[])");
    db_call_commit(tx, judge_metrics, cb, arg);
}

/* What KEEP_CHECKPOINT answers. */
enum { KEPT = 0, TAKEN = 1, STALE = 2 };

static int judge_checkpoint(const struct db_result *r, struct det_err *err)
{
    int64_t verdict = db_rows(r) == 1 ? db_i64(r, 0, 0) : STALE;
    if (verdict == KEPT)
        return 0;
    if (verdict == TAKEN)
        return det_fail(err, DET_EEXIST, "the checkpoint's uuid belongs to another trial");
    return det_fail(err, DET_ESTALE, "the checkpoint belongs to a run of the trial that has ended");
}

/* clang-format off */
#define OF_RUN "id = $4::integer AND run_id = $5::integer"
#define OF_UNMANAGED_TASK                                                                          \
    "task_id = $2 AND $4::integer = 0 AND CASE WHEN $5::integer = 0 THEN heartbeat IS NOT NULL "   \
    "ELSE run_id = $5::integer AND EXISTS (SELECT 1 FROM experiments e WHERE e.id = "              \
    "experiment_id AND e.unmanaged) END"
#define KEEP_CHECKPOINT(trial)                                                                     \
    "WITH fence AS (SELECT id, experiment_id, run_id FROM trials WHERE " trial " FOR UPDATE), "    \
    "kept AS (INSERT INTO checkpoints (uuid, task_id, allocation_id, experiment_id, trial_id, "    \
    " run_id, state, steps, metadata, resources, bytes, report_time) "                             \
    " SELECT $1, $2, $3, f.experiment_id, f.id, f.run_id, 'COMPLETED', $6::integer, "              \
    " $7::jsonb, $8::jsonb, "                                                                      \
    " (SELECT coalesce(sum(v.value::bigint), 0) FROM jsonb_each_text($8::jsonb) v), "              \
    " $9::timestamptz "                                                                           \
    " FROM fence f ON CONFLICT (uuid) DO UPDATE SET metadata = excluded.metadata, "                \
    " resources = excluded.resources, bytes = excluded.bytes, state = excluded.state, "            \
    " steps = excluded.steps WHERE checkpoints.trial_id = excluded.trial_id "                      \
    " AND checkpoints.state IN ('ACTIVE', 'COMPLETED') RETURNING 1) "                              \
    "SELECT CASE WHEN EXISTS (SELECT 1 FROM kept) THEN 0 "                                         \
    "WHEN EXISTS (SELECT 1 FROM fence) THEN 1 ELSE 2 END"
/* clang-format on */

void db_report_checkpoint(struct db *db, const struct db_checkpoint_report *r, db_done_cb *cb,
                          void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_str_arg(a, r->uuid), r->task_id), r->allocation_id);
    db_i64_arg(db_i64_arg(a, r->trial_id), r->run_id);
    db_str_arg(db_str_arg(db_i64_arg(a, r->steps), r->metadata), r->resources);
    db_time_arg(a, r->time_us);
    db_call_write(db, r->trial_id ? KEEP_CHECKPOINT(OF_RUN) : KEEP_CHECKPOINT(OF_UNMANAGED_TASK), a,
                  judge_checkpoint, cb, arg);
}

void db_report_runner_state(struct db *db, int64_t trial_id, int64_t run_id, const char *state,
                            db_done_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_i64_arg(db_i64_arg(a, trial_id), run_id), state);
    db_call_write(db, sql_report_runner_state, a, db_judge_fence, cb, arg);
}

void db_report_progress(struct db *db, int64_t trial_id, int64_t run_id, double trial_progress,
                        double experiment_progress, db_done_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_f64_arg(db_i64_arg(db_i64_arg(a, trial_id), run_id), trial_progress);
    if (experiment_progress < 0)
        db_null_arg(a);
    else
        db_f64_arg(a, experiment_progress);
    db_call_write(db,
                  "WITH t AS (UPDATE trials SET progress = $3::float8, last_activity = now() "
                  "WHERE id = $1::integer AND run_id = $2::integer RETURNING experiment_id), "
                  "e AS (UPDATE experiments SET progress = $4::float8 "
                  "WHERE id = (SELECT experiment_id FROM t) AND $4::float8 IS NOT NULL) "
                  "SELECT 1 FROM t",
                  a, db_judge_fence, cb, arg);
}

void db_report_profile(struct db *db, int64_t trial_id, int64_t run_id, const char *labels,
                       const char *batch, db_done_cb *cb, void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_i64_arg(db_i64_arg(a, trial_id), run_id), labels), batch);
    db_call_write(db,
                  "INSERT INTO profiler_metrics (trial_id, labels, batch) "
                  "SELECT id, $3::jsonb, $4::jsonb FROM trials "
                  "WHERE id = $1::integer AND run_id = $2::integer FOR SHARE",
                  a, db_judge_fence, cb, arg);
}

void db_report_accelerators(struct db *db, const struct db_accelerators *x, db_done_cb *cb,
                            void *arg)
{
    struct db_args *a = DB_ARGS;
    db_str_arg(db_str_arg(db_str_arg(a, x->allocation_id), x->container_id), x->task_id);
    db_str_arg(db_str_arg(db_str_arg(a, x->node_name), x->type), x->uuids);
    db_call_write(db,
                  "INSERT INTO accelerators (allocation_id, container_id, task_id, node_name, "
                  "accelerator_type, accelerator_uuids) VALUES ($1, $2, $3, $4, $5, $6::jsonb) "
                  "ON CONFLICT (allocation_id, container_id) DO UPDATE SET "
                  "node_name = excluded.node_name, accelerator_type = excluded.accelerator_type, "
                  "accelerator_uuids = excluded.accelerator_uuids",
                  a, NULL, cb, arg);
}
