/* Validation (docs/contract/loop.md 6): batches of this rank, reduction over ranks, report,
 * policy. */
#include "clk.h"
#include "log.h"
#include "loop_alive.h"
#include "loop_impl.h"
#include "loop_math.h"
#include "loop_report.h"
#include "span.h"

#include <string.h>

/* ---- This rank's share ----------------------------------------------------------------------- */

static int evaluate_one(struct loop *l, const void *batch, int64_t k, int64_t *records,
                        struct det_err *err)
{
    struct loop_metrics *m = loop_rows_next(&l->outs);
    if (l->t->batch_records)
        *records += l->t->batch_records(l->self, batch);
    int rc = l->t->evaluate_batch(l->self, batch, k, m, err);
    if (rc < 0)
        return det_wrap(err, rc, "evaluate_batch, batch %lld", (long long)k);
    loop_alive(PROGRESS_VALIDATING, (uint64_t)l->state.batches_trained);
    return loop_same_names(&l->outs.v[0], m,
                           "Validation metric names must match across all batches of data", err);
}

static int evaluate_batches(struct loop *l, int64_t *records, struct det_err *err)
{
    struct sampler_plan p = {.batches = l->valid.batches, .size = l->size, .rank = l->rank};
    struct sampler_pos pos;
    int rc = l->valid.type->start ? l->valid.type->start(l->valid.self, &p, err) : 0;
    for (int64_t k = 0; rc == 0 && sampler_at(&p, k, &pos); k++) {
        const void *batch = NULL;
        if ((rc = comm_check(l->comm, err)) < 0)
            return det_wrap(err, rc, "before evaluate_batch, batch %lld", (long long)k);
        rc = l->valid.type->next(l->valid.self, pos, &batch, err);
        if (rc == DET_ENOENT)
            return 0; /* a loader of unknown length ends by itself */
        if (rc < 0)
            return det_wrap(err, rc, "validation data, batch %lld", (long long)k);
        rc = evaluate_one(l, batch, k, records, err);
        if (l->c->test_mode)
            break;
    }
    return rc;
}

static int choose_reductions(struct loop *l, const struct loop_metrics *names,
                             enum loop_reduction *how, struct det_err *err)
{
    for (size_t i = 0; i < names->n; i++) {
        int r = l->t->reduction ? l->t->reduction(l->self, names->v[i].name, err) : LOOP_AVG;
        if (r < 0)
            return r;
        if (r < LOOP_AVG || r > LOOP_MIN)
            return det_fail(err, DET_EINVAL, "evaluation_reducer: %d is no reducer (metric \"%s\")",
                            r, names->v[i].name);
        how[i] = (enum loop_reduction)r;
    }
    return 0;
}

/* ---- All ranks' shares ----------------------------------------------------------------------- */

static void partial_pack(const struct loop_partial *p, struct buf *out)
{
    JSON_OWN j = json_make("{s:I, s:I, s:o}", "batches", (json_int_t)p->batches, "records",
                           (json_int_t)p->records, "metrics", loop_metrics_to_json(&p->metrics));
    json_write(out, j);
}

static int partial_unpack(const struct comm_blobs *all, int rank, struct loop_partial *ret,
                          struct det_err *err)
{
    JSON_OWN j = json_parse(all->v[rank], all->bytes[rank], err);
    if (!j)
        return DET_ECORRUPT;
    ret->batches = json_int(j, "batches", 0);
    ret->records = json_int(j, "records", 0);
    loop_metrics_from_json(&ret->metrics, json_obj(j, "metrics"));
    return 0;
}

/* In the ranks' shares of a validation. */
static void find_infinite(struct loop *l, const struct loop_partial *all,
                          const struct loop_metrics *total)
{
    det_cleanup(freep) const struct loop_metrics **v = det_zalloc((size_t)l->size * sizeof *v);
    for (int r = 0; r < l->size; r++)
        v[r] = &all[r].metrics;
    l->infinite = loop_find_infinite(v, (size_t)l->size, total, 1);
}

static int combine_all(struct loop *l, struct loop_partial *all, struct loop_partial *total,
                       struct det_err *err)
{
    const struct loop_metrics *names = NULL;
    for (int r = 0; r < l->size; r++) {
        total->batches += all[r].batches;
        total->records += all[r].records;
        if (!names && all[r].batches)
            names = &all[r].metrics;
    }
    if (!names)
        return det_fail(err, DET_EINVAL, "validation_loader is empty.");
    det_cleanup(freep) enum loop_reduction *how = det_zalloc((names->n + 1) * sizeof *how);
    int rc = choose_reductions(l, names, how, err);
    if (rc == 0)
        rc = loop_reduce_ranks(all, (size_t)l->size, how, &total->metrics, err);
    if (rc == 0)
        find_infinite(l, all, &total->metrics);
    return rc;
}

static int combine_ranks(struct loop *l, const struct loop_partial *mine,
                         struct loop_partial *total, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    det_cleanup(comm_blobs_finish) struct comm_blobs blobs = {0};
    partial_pack(mine, &b);
    int rc = comm_allgather(l->comm, b.p, b.len, &blobs, err);
    if (rc < 0)
        return rc;
    struct loop_partial *all = det_zalloc((size_t)l->size * sizeof *all);
    for (int r = 0; rc == 0 && r < l->size; r++)
        rc = partial_unpack(&blobs, r, &all[r], err);
    if (rc == 0)
        rc = combine_all(l, all, total, err);
    for (int r = 0; r < l->size; r++)
        loop_metrics_finish(&all[r].metrics);
    free(all);
    return rc;
}

static int by_batches(struct loop *l, struct loop_partial *total, struct det_err *err)
{
    struct loop_partial mine = {0};
    l->outs.n = 0;
    int rc = LOOP_CALLBACKS(l, on_validation_epoch_start, err);
    if (rc == 0)
        rc = evaluate_batches(l, &mine.records, err);
    if (rc == 0)
        rc = LOOP_CALLBACKS(l, on_validation_epoch_end, l->outs.v, l->outs.n, err);
    if (rc < 0)
        return rc;
    mine.batches = (int64_t)l->outs.n;
    size_t names = l->outs.n ? l->outs.v[0].n : 0;
    det_cleanup(freep) enum loop_reduction *how = det_zalloc((names + 1) * sizeof *how);
    if (l->outs.n)
        rc = choose_reductions(l, &l->outs.v[0], how, err);
    if (rc == 0)
        rc = loop_reduce_rows(l->outs.v, l->outs.n, how, &mine.metrics, err);
    if (rc == 0)
        rc = combine_ranks(l, &mine, total, err);
    loop_metrics_finish(&mine.metrics);
    return rc;
}

/* Rank 0 evaluates alone; its metrics, or its failure, go to all. */
static int by_dataset(struct loop *l, struct loop_partial *total, struct det_err *err)
{
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    det_cleanup(freep) void *text = NULL;
    struct loop_agreed a = {0};
    size_t n;
    if (l->chief) {
        struct det_err e = {0};
        l->works_alone = true;
        loop_agreed_fail(&a, l->t->evaluate_all(l->self, &total->metrics, &e), &e);
        l->works_alone = false;
        JSON_OWN j = loop_metrics_to_json(&total->metrics);
        json_write(&b, j);
    }
    int rc = loop_agree(l, &a, err);
    if (rc < 0)
        return det_wrap(err, rc, "evaluate_full_dataset");
    rc = comm_broadcast_bytes(l->comm, buf_str(&b), b.len, &text, &n, err);
    if (rc < 0 || l->chief)
        return rc;
    JSON_OWN j = json_parse(text, n, err);
    loop_metrics_from_json(&total->metrics, j);
    return j ? 0 : DET_ECORRUPT;
}

/* ---- What follows from it -------------------------------------------------------------------- */

/* What it came to, for who reads the log; a long list of metrics is cut. */
static void log_outcome(const struct loop *l, const struct loop_partial *t, int64_t us)
{
    enum { NAMED_MAX = 16 };
    double s = (double)(us > 0 ? us : 1) / 1e6, v;
    det_cleanup(buf_finish) struct buf b = BUF_INIT;
    for (size_t i = 0, named = 0; i < t->metrics.n && named < NAMED_MAX; i++)
        if (loop_metric_scalar(&t->metrics.v[i], &v))
            buf_addf(&b, "%s%s %.6g", named++ ? ", " : " ", t->metrics.v[i].name, v);
    if (!l->t->evaluate_batch)
        log_info("validated after batch %lld:%s; in %.4gs", (long long)l->state.batches_trained,
                 buf_str(&b), s);
    else
        log_info("validated after batch %lld:%s; %lld records in %.4gs (%.4g records/s), in %lld "
                 "batches (%.4g batches/s)",
                 (long long)l->state.batches_trained, buf_str(&b), (long long)t->records, s,
                 (double)t->records / s, (long long)t->batches, (double)t->batches / s);
}

static int searcher_metric(const struct loop *l, const struct loop_metrics *m, double *ret,
                           struct det_err *err)
{
    const char *name = l->c->searcher_metric;
    *ret = __builtin_nan("");
    if (!name)
        return 0;
    const struct loop_metric *x = loop_metrics_find(m, name);
    if (!x) {
        det_cleanup(buf_finish) struct buf b = BUF_INIT;
        for (size_t i = 0; i < m->n; i++)
            buf_addf(&b, "%s\"%s\"", i ? ", " : "", m->v[i].name);
        return det_fail(err, DET_EINVAL,
                        "the searcher's metric \"%s\" is not among the validation metrics: %s; "
                        "report it in validation, or name another one as searcher.metric",
                        name, m->n ? buf_str(&b) : "there are none");
    }
    if (!loop_metric_scalar(x, ret))
        return det_fail(err, DET_EINVAL, "the searcher's metric \"%s\" is not one number", name);
    return 0;
}

static int no_nones(const struct loop_metrics *m, struct det_err *err)
{
    for (size_t i = 0; i < m->n; i++)
        if (m->v[i].kind == LOOP_METRIC_NONE)
            return det_fail(err, DET_EINVAL, "validation metric \"%s\" is none", m->v[i].name);
    return 0;
}

/* The chief's: is this the best so far? Remembers it if so; not a NaN, which nothing would beat. */
static bool is_best(struct loop *l, double v)
{
    /* What an earlier run reported here may be this very value, its checkpoint lost with that
     * run. */
    bool again = l->state.batches_trained <= l->known_validation && v == l->best;
    bool best = !l->have_best || again || (l->c->smaller_is_better ? v < l->best : v > l->best);
    if (best && v == v) {
        l->have_best = true;
        l->best = v;
    }
    return best;
}

static bool op_done(const struct loop *l)
{
    int64_t done =
        l->op.unit.kind == LOOP_EPOCHS ? l->state.epochs_trained : l->state.batches_trained;
    return l->op.active && done >= l->op.unit.n;
}

/* After its report. A metric of the whole dataset, or of a reducer of the trial's own, is no
 * rank's. */
static int check_finite(struct loop *l, const struct loop_metrics *m, struct det_err *err)
{
    if (!l->infinite.name) {
        l->infinite = loop_find_infinite(&m, 1, m, 1);
        l->infinite.rank = -1;
    }
    return loop_invalid_metric(l, "validation", l->state.batches_trained, err);
}

static int chief_report(struct loop *l, const struct loop_metrics *m, bool completes,
                        bool *ret_checkpoint, struct det_err *err)
{
    double v;
    bool best_policy = l->c->managed && l->c->policy == LOOP_POLICY_BEST;
    bool all = l->c->policy == LOOP_POLICY_ALL ||
               (!l->c->managed && l->c->policy == LOOP_POLICY_BEST); /* local: best becomes all */
    if (best_policy)
        loop_ask_best(l);
    int rc = no_nones(m, err);
    if (rc == 0)
        rc = loop_report_metrics(l, "validation", m, NULL, 0, err);
    if (rc == 0)
        rc = check_finite(l, m, err);
    if (rc == 0)
        rc = searcher_metric(l, m, &v, err);
    if (rc == 0 && completes)
        rc = loop_report_completed(l, v, err);
    if (rc == 0)
        *ret_checkpoint = all || (best_policy && is_best(l, v));
    return rc;
}

/* Reports, completes the operation, decides on a checkpoint: the chief does, all follow. */
static int conclude_validation(struct loop *l, const struct loop_metrics *m, struct det_err *err)
{
    struct loop_agreed a = {0};
    bool completes = op_done(l) && !l->op.completed;
    if (l->chief) {
        struct det_err e = {0};
        bool checkpoint = false;
        int rc = chief_report(l, m, completes, &checkpoint, &e);
        a.flag = checkpoint;
        loop_agreed_fail(&a, rc, &e);
    }
    int rc = loop_agree(l, &a, err);
    if (rc < 0)
        return rc;
    if (completes)
        l->op.completed = true;
    return a.flag && !loop_ckpt_current(l) ? loop_checkpoint(l, false, err) : 0;
}

static int begin_validation(struct loop *l, struct det_err *err)
{
    int rc = l->chief ? loop_report_status(l, "validating", err) : 0;
    if (rc == 0)
        rc = loop_reducers_reset(l, false, err);
    if (rc == 0)
        rc = l->t->set_training(l->self, false, err);
    if (rc == 0)
        rc = LOOP_CALLBACKS(l, on_validation_start, err);
    return rc;
}

int loop_validate(struct loop *l, struct det_err *err)
{
    SPAN(SPAN_LOOP, "validate");
    struct loop_partial total = {0};
    int64_t start_us = clk_mono_us();
    l->infinite = (struct loop_infinite){0};
    loop_alive(PROGRESS_VALIDATING, (uint64_t)l->state.batches_trained);
    int rc = begin_validation(l, err);
    if (rc == 0)
        rc = l->t->evaluate_batch ? by_batches(l, &total, err) : by_dataset(l, &total, err);
    if (rc == 0)
        rc = loop_reducers_run(l, false, &total.metrics, err);
    if (rc == 0)
        rc = LOOP_CALLBACKS(l, on_validation_end, &total.metrics, err);
    if (rc == 0) {
        l->state.last_val = l->state.batches_trained;
        if (l->chief && l->c->managed)
            log_outcome(l, &total, clk_mono_us() - start_us);
        rc = conclude_validation(l, &total.metrics, err);
    }
    l->infinite = (struct loop_infinite){0}; /* its name was one of these */
    loop_metrics_finish(&total.metrics);
    return rc < 0 ? det_wrap(err, rc, "validation after %lld batches",
                             (long long)l->state.batches_trained)
                  : 0;
}
