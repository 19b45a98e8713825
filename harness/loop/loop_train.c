/*
 * Training (docs/contract/loop.md 5): operations, workloads, batches, boundaries.
 *
 *   operation -> workload: batches until any boundary is due -> report -> handle the boundaries
 */
#include "loop_alive.h"
#include "loop_impl.h"
#include "loop_math.h"
#include "loop_report.h"
#include "loop_profile.h"
#include "loop_save.h"
#include "log.h"
#include "preempt.h"
#include "reporter.h"
#include "span.h"

enum boundary { B_TRAIN, B_VALIDATE, B_CHECKPOINT, B_REPORT, B_COUNT };

static bool has_reached_op(const struct loop *l)
{
    int64_t done =
        l->op.unit.kind == LOOP_EPOCHS ? l->state.epochs_trained : l->state.batches_trained;
    return done >= l->op.unit.n;
}

/* ---- Stopping (17) --------------------------------------------------------------------------- */

/* Why all ranks leave: any rank's own wish, or what only the chief knows. One exchange for all. */
enum { WISH_STOP, WISH_PREEMPT, WISH_FAILED, WISH_COUNT };

static bool is_interrupted(const struct loop *l)
{
    return l->c->interrupt && *l->c->interrupt;
}

static int check_stop(struct loop *l, struct det_err *err)
{
    float wish[WISH_COUNT] = {0};
    int failed = l->reporter ? reporter_failed(l->reporter, err) : 0;
    if (failed == 0)
        failed = loop_checkpoint_poll(l, err);
    wish[WISH_STOP] = l->stop_requested || is_interrupted(l);
    wish[WISH_PREEMPT] = l->preempt && preempt_wanted(l->preempt);
    wish[WISH_FAILED] = failed < 0;
    int rc = comm_allreduce_mean_f32(l->comm, wish, WISH_COUNT, failed < 0 ? NULL : err);
    if (failed < 0)
        return failed;
    if (rc < 0)
        return rc;
    if (wish[WISH_FAILED] > 0)
        return det_fail(err, DET_EPEER, "rank 0 cannot go on; its log says why");
    if (wish[WISH_PREEMPT] > 0 || wish[WISH_STOP] > 0)
        l->leaving = true;
    if (wish[WISH_PREEMPT] > 0 && l->chief) {
        log_info("preempted after %lld batches", (long long)l->state.batches_trained);
        return loop_report_preempted(l, err);
    }
    return 0;
}

/* ---- One batch ------------------------------------------------------------------------------- */

static int step_schedulers(struct loop *l, int64_t b, struct det_err *err)
{
    SPAN(SPAN_LOOP, "step_lr_schedulers");
    for (size_t i = 0; i < l->n_lrs; i++) {
        int64_t n = loop_lr_steps(&l->lrs[i], l->c->aggregation_frequency, b, l->epoch_len);
        for (; n > 0; n--) {
            int rc = l->lrs[i].step(l->lrs[i].self, err);
            if (rc < 0)
                return det_wrap(err, rc, "LR scheduler %zu", i);
        }
    }
    return 0;
}

static int fetch_batch(struct loop *l, const void **ret, struct det_err *err)
{
    SPAN(SPAN_LOOP, "dataloader_next");
    struct sampler_plan p = {
        .batches = l->train.batches, .repeat = true, .size = l->size, .rank = l->rank};
    struct sampler_pos pos;
    sampler_at(&p, l->batch_idx, &pos);
    int rc = l->train.type->next(l->train.self, pos, ret, err);
    if (rc == DET_ENOENT)
        return det_fail(err, DET_EINVAL, "training data ended at batch %lld; it must repeat",
                        (long long)l->batch_idx);
    return rc < 0 ? det_wrap(err, rc, "training data, batch %lld", (long long)l->batch_idx) : 0;
}

static int hand_batch(struct loop *l, const void *batch, int64_t b, int64_t e, struct det_err *err)
{
    SPAN(SPAN_LOOP, "train_batch");
    int64_t start_ns = l->profile ? span_now_ns() : 0;
    int rc = l->t->train_batch(l->self, batch, e, b, loop_rows_next(&l->rows), err);
    int64_t ns = l->profile ? span_now_ns() - start_ns : 0;
    int64_t records = rc == 0 && l->t->batch_records ? l->t->batch_records(l->self, batch) : 0;
    if (rc == 0 && l->profile && l->t->batch_records)
        loop_profile_trained(l, records, ns);
    return rc < 0 ? det_wrap(err, rc, "train_batch, batch %lld", (long long)b) : 0;
}

/* A device says late what failed: in any of the batches since it was asked last. */
static int late_failed(const struct loop *l, int rc, struct det_err *err)
{
    int64_t end = l->state.batches_trained;
    return det_wrap(err, rc,
                    "training metrics of batches %lld to %lld (DET_CUDA_SYNC=1 or the device cpu "
                    "names the call)",
                    (long long)(end - (int64_t)(l->rows.n - l->n_settled)), (long long)end - 1);
}

/* Numbers that are to come later are there now; each row is waited for once. */
static int settle_late_metrics(struct loop *l, struct det_err *err)
{
    const double *values;
    size_t n;
    if (!l->t->late_metrics)
        return 0;
    int rc = l->t->late_metrics(l->self, &values, &n, err);
    if (rc < 0)
        return late_failed(l, rc, err);
    for (; l->n_settled < l->rows.n; l->n_settled++)
        loop_metrics_settle(&l->rows.v[l->n_settled], values, n);
    return 0;
}

/* Whoever watches batches sees the metrics of this one now. */
static int show_batch(struct loop *l, struct det_err *err)
{
    const struct loop_observer *o = &l->c->observer;
    if (!o->batch || !l->chief || (o->wants_batch && !o->wants_batch(o->self, l)))
        return 0;
    int rc = settle_late_metrics(l, err);
    if (rc == 0)
        o->batch(o->self, l, &l->rows.v[l->rows.n - 1]);
    return rc;
}

static int train_batch(struct loop *l, int64_t b, int64_t e, struct det_err *err)
{
    const void *batch = NULL;
    int rc = loop_profile_batch(l, b, err);
    if (l->t->between_batches)
        l->t->between_batches(l->self, false);
    l->batch_idx = b;
    if (rc == 0 && b % l->epoch_len == 0 && l->n_callbacks)
        rc = LOOP_CALLBACKS(l, on_training_epoch_start, e, err);
    if (rc == 0)
        rc = fetch_batch(l, &batch, err);
    if (rc < 0)
        return rc;
    rc = hand_batch(l, batch, b, e, err);
    if (rc < 0)
        return rc;
    if (l->t->scaler_update && loop_is_update_batch(l))
        rc = l->t->scaler_update(l->self, err);
    if (rc == 0 && l->n_lrs)
        rc = step_schedulers(l, b, err);
    if (rc < 0)
        return rc;
    l->state.batches_trained++;
    rc = show_batch(l, err);
    if (rc < 0)
        return rc;
    loop_alive(PROGRESS_TRAINING, (uint64_t)l->state.batches_trained);
    if (l->state.batches_trained % l->epoch_len != 0)
        return 0;
    l->state.epochs_trained++;
    return LOOP_CALLBACKS(l, on_training_epoch_end, e, err);
}

/* ---- A workload ------------------------------------------------------------------------------ */

static bool mark_boundaries(const struct loop *l, int64_t b, bool marks[B_COUNT])
{
    const struct det_loop_config *c = l->c;
    marks[B_TRAIN] = c->test_mode || loop_due(l->op.unit, b, l->epoch_len);
    marks[B_VALIDATE] = loop_due(c->validation_period, b, l->epoch_len);
    marks[B_CHECKPOINT] = loop_due(c->checkpoint_period, b, l->epoch_len);
    marks[B_REPORT] =
        loop_due(c->reporting_period, b, l->epoch_len) || (l->size == 1 && is_interrupted(l));
    return marks[B_TRAIN] || marks[B_VALIDATE] || marks[B_CHECKPOINT] || marks[B_REPORT];
}

/* A run that is no longer the current one ends at once, in the middle of a workload too, and so
 * does one that a rank has left; and a checkpoint is reported as soon as it is there (that it
 * failed, all ranks hear at the boundary). */
static int between_batches(struct loop *l, struct det_err *err)
{
    int rc = l->reporter ? reporter_failed(l->reporter, err) : 0;
    if (rc == 0 && l->saving && loop_save_ok(l->saving))
        rc = loop_checkpoint_poll(l, err);
    if (rc < 0)
        return rc;
    rc = comm_check(l->comm, err);
    return rc < 0 ? det_wrap(err, rc, "before batch %lld", (long long)l->state.batches_trained) : 0;
}

static int begin_workload(struct loop *l, struct det_err *err)
{
    int rc = l->chief ? loop_report_status(l, "training", err) : 0;
    if (rc == 0)
        rc = l->t->set_training(l->self, true, err);
    if (rc == 0)
        rc = loop_reducers_reset(l, true, err);
    l->rows.n = l->n_settled = 0;
    return rc;
}

static int run_workload(struct loop *l, bool marks[B_COUNT], struct det_err *err)
{
    int rc = begin_workload(l, err);
    comm_set_timeout(l->comm, l->batch_idx < 0 ? LOOP_PATIENCE_MS : 0);
    while (rc == 0) {
        int64_t b = l->state.batches_trained;
        rc = between_batches(l, err);
        if (rc == 0)
            rc = train_batch(l, b, b / l->epoch_len, err);
        if (rc == 0 && mark_boundaries(l, b, marks))
            break;
    }
    comm_set_timeout(l->comm, LOOP_PATIENCE_MS);
    return rc;
}

/* ---- Its report ------------------------------------------------------------------------------ */

static void rows_pack(const struct loop_rows *rows, struct buf *out)
{
    buf_add_ch(out, '[');
    for (size_t i = 0; i < rows->n; i++) {
        if (i)
            buf_add_ch(out, ',');
        loop_metrics_write(out, &rows->v[i]);
    }
    buf_add_ch(out, ']');
}

static int rows_unpack(const struct comm_blobs *all, int rank, size_t n, struct loop_rows *ret,
                       struct det_err *err)
{
    JSON_OWN a = json_parse(all->v[rank], all->bytes[rank], err);
    if (!json_is_array(a) || json_array_size(a) != n)
        return det_fail(err, DET_EINVAL, "rank %d trained %zu batches where rank 0 trained %zu",
                        rank, json_array_size(a), n);
    for (size_t i = 0; i < n; i++)
        loop_metrics_from_json(loop_rows_next(ret), json_array_get(a, i));
    return 0;
}

/* Replaces this rank's rows by the means over ranks: the same on every rank. */
static int average_ranks(struct loop *l, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf mine = BUF_INIT;
    det_cleanup(comm_blobs_finish) struct comm_blobs all = {0};
    rows_pack(&l->rows, &mine);
    int rc = comm_allgather(l->comm, mine.p, mine.len, &all, err);
    if (rc < 0)
        return rc;
    size_t size = (size_t)l->size, n = l->rows.n;
    struct loop_rows *ranks = det_zalloc(size * sizeof *ranks);
    const struct loop_metrics **v = det_zalloc(size * sizeof *v);
    for (size_t r = 0; rc == 0 && r < size; r++) {
        rc = rows_unpack(&all, (int)r, n, &ranks[r], err);
        v[r] = ranks[r].v;
    }
    if (rc == 0)
        rc = loop_average_ranks(v, size, n, l->rows.v, err);
    if (rc == 0)
        l->infinite = loop_find_infinite(v, size, l->rows.v, n);
    for (size_t r = 0; r < size; r++)
        loop_rows_finish(&ranks[r]);
    free(ranks);
    free(v);
    return rc;
}

static int average_workload(struct loop *l, struct loop_metrics *ret, struct det_err *err)
{
    SPAN(SPAN_LOOP, "average_training_metrics");
    int rc = settle_late_metrics(l, err);
    const struct loop_metrics *own = l->rows.v;
    if (rc == 0 && l->size > 1)
        rc = average_ranks(l, err);
    else if (rc == 0)
        l->infinite = loop_find_infinite(&own, 1, own, l->rows.n);
    return rc < 0 ? rc : loop_average(l->rows.v, l->rows.n, ret, err);
}

/* All ranks have the same averages, so all come to the same end. */
static int check_finite(struct loop *l, struct det_err *err)
{
    int64_t batch = l->state.batches_trained - (int64_t)(l->rows.n - l->infinite.row);
    return loop_invalid_metric(l, "training", batch, err);
}

static int report_workload(struct loop *l, struct det_err *err)
{
    det_cleanup(loop_metrics_finish) struct loop_metrics avg = LOOP_METRICS_INIT;
    int rc = average_workload(l, &avg, err);
    if (rc == 0)
        rc = loop_reducers_run(l, true, &avg, err);
    if (rc == 0 && l->chief)
        rc = loop_report_metrics(l, "training", &avg, l->rows.v, l->rows.n, err);
    if (rc == 0)
        rc = check_finite(l, err);
    if (rc == 0)
        rc = LOOP_CALLBACKS(l, on_training_workload_end, &avg, l->rows.v, l->rows.n, err);
    return rc;
}

/* ---- Boundaries ------------------------------------------------------------------------------ */

static int handle_boundary(struct loop *l, enum boundary which, bool *progressed,
                           struct det_err *err)
{
    switch (which) {
    case B_VALIDATE: return loop_val_current(l) ? 0 : loop_validate(l, err);
    case B_CHECKPOINT: return loop_ckpt_current(l) ? 0 : loop_checkpoint(l, false, err);
    case B_TRAIN:
    case B_REPORT:
    case B_COUNT: break;
    }
    if (!l->chief || *progressed || l->op.completed)
        return 0;
    *progressed = true;
    return loop_report_progress(l, err);
}

static int handle_boundaries(struct loop *l, const bool marks[B_COUNT], struct det_err *err)
{
    bool progressed = false;
    int rc = 0;
    for (int i = 0; rc == 0 && i < B_COUNT && !l->leaving; i++) {
        if (!marks[i])
            continue;
        rc = handle_boundary(l, (enum boundary)i, &progressed, err);
        loop_tensorboard_keep(l);
        if (rc == 0)
            rc = check_stop(l, err);
    }
    /* whoever leaves between two of them has trained the whole workload all the same */
    if (rc == 0 && l->leaving && (marks[B_TRAIN] || marks[B_REPORT]))
        rc = handle_boundary(l, B_REPORT, &progressed, err);
    return rc;
}

/* ---- Operations ------------------------------------------------------------------------------ */

/* An operation that a restart found trained and validated but not completed is validated again: the
 * master may not have the metric, and the same report twice is one report. Without a master there
 * is nobody who could lack it. */
static int finish_op(struct loop *l, struct det_err *err)
{
    int rc = 0;
    if (!loop_val_current(l) || (l->c->managed && !l->op.completed))
        rc = loop_validate(l, err);
    else
        l->op.completed = true;
    if (rc == 0 && !loop_ckpt_current(l))
        rc = loop_checkpoint(l, false, err);
    return rc;
}

static int train_op(struct loop *l, struct det_err *err)
{
    int rc = 0;
    while (rc == 0 && !l->leaving && !has_reached_op(l)) {
        bool marks[B_COUNT] = {0};
        rc = run_workload(l, marks, err);
        if (rc == 0)
            rc = report_workload(l, err);
        if (rc == 0)
            rc = handle_boundaries(l, marks, err);
    }
    if (rc == 0 && l->leaving)
        return loop_ckpt_current(l) ? 0 : loop_checkpoint(l, false, err);
    return rc < 0 ? rc : finish_op(l, err);
}

static struct loop_unit unit_of(const struct loop *l, int64_t length)
{
    const struct det_loop_config *c = l->c;
    if (c->test_mode || c->length_unit == LOOP_LEN_BATCHES)
        return (struct loop_unit){.n = length};
    if (c->length_unit == LOOP_LEN_EPOCHS)
        return (struct loop_unit){.kind = LOOP_EPOCHS, .n = length};
    int64_t batches = length / c->global_batch_size;
    return (struct loop_unit){.n = batches > 1 ? batches : 1};
}

/* The chief asks; all know. flag: there is none. */
static int next_op(struct loop *l, bool *ret_none, struct det_err *err)
{
    struct loop_agreed a = {0};
    if (l->chief) {
        struct det_err e = {0};
        bool none = false;
        int rc = loop_ask_operation(l, &a.n[0], &none, &e);
        a.flag = none;
        loop_agreed_fail(&a, rc, &e);
    }
    int rc = loop_agree(l, &a, err);
    *ret_none = a.flag;
    if (rc == 0 && !a.flag)
        l->op = (struct loop_op){.length = a.n[0], .active = true, .unit = unit_of(l, a.n[0])};
    return rc;
}

int loop_run_ops(struct loop *l, struct det_err *err)
{
    for (;;) {
        bool none;
        int rc = next_op(l, &none, err);
        if (rc < 0)
            return rc;
        if (none && (rc = loop_checkpoint_finish(l, err)) == 0 && l->chief)
            rc = loop_report_preempted(l, err); /* the end is meant, not an accident */
        if (none)
            return rc;
        rc = train_op(l, err);
        if (rc == 0 && l->leaving)
            return loop_checkpoint_finish(l, err);
        if (rc < 0)
            return rc;
    }
}
