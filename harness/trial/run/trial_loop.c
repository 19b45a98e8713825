#include "trial_loop.h"

#include "batch.h"
#include "span.h"
#include "trial_context.h"
#include "trial_crash.h"
#include "trial_overlap.h"

struct trial_run {
    const struct det_trial_type *type;
    struct trial_extra extra;
    struct det_loop_trial_type table; /* the static one, less what this trial does not have */
    struct det_trial_context *ctx;    /* from create to destroy; kept: to the next run */
    bool keep;
};

/* ---- life ---- */

static int on_create(void *self, struct loop *loop, struct det_err *err)
{
    struct trial_run *r = self;
    if (!r->ctx)
        return trial_context_create(r->type, loop_config(loop), loop, &r->extra, &r->ctx, err);
    trial_context_attach(r->ctx, loop_config(loop), loop);
    return 0;
}

static void on_destroy(void *self)
{
    struct trial_run *r = self;
    if (r->keep && r->ctx)
        trial_context_detach(r->ctx);
    else
        trial_context_destroy(det_take(r->ctx));
}

/* ---- callbacks, reducers, schedulers ---- */

static int on_callbacks(void *self, const struct loop_callback **ret, size_t *ret_n,
                        struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    ctx->adding = true;
    trial_crash_mark("build_callbacks", -1);
    if (ctx->type->build_callbacks)
        ctx->type->build_callbacks(ctx->trial, ctx);
    ctx->adding = false;
    trial_fill_callbacks(ctx);
    *ret = ctx->loop_callbacks.v;
    *ret_n = ctx->loop_callbacks.n;
    return trial_check(ctx, err);
}

static int on_reducers(void *self, const struct loop_reducer **ret, size_t *ret_n,
                       struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    trial_fill_reducers(ctx);
    *ret = ctx->loop_reducers.v;
    *ret_n = ctx->loop_reducers.n;
    return 0;
}

static int on_lrs(void *self, const struct loop_lr **ret, size_t *ret_n, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    *ret = ctx->loop_lrs.v;
    *ret_n = ctx->loop_lrs.n;
    return 0;
}

/* ---- data ---- */

static int build_loader(struct det_trial_context *ctx, struct trial_loader *l, const char *hook,
                        struct det_data_loader *(*build)(void *self, struct det_trial_context *ctx),
                        struct loop_loader *ret, struct det_err *err)
{
    trial_loader_finish(l);
    trial_crash_mark(hook, -1);
    struct det_data_loader *dl = build(ctx->trial, ctx);
    int rc = trial_check(ctx, err);
    if (rc < 0) {
        det_data_loader_destroy(dl);
        return rc;
    }
    return trial_loader_init(l, dl, ctx->config->seed, ret, err);
}

static int on_build_training(void *self, struct loop_loader *ret, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    return build_loader(ctx, &ctx->train, "build_training_data_loader",
                        ctx->type->build_training_data_loader, ret, err);
}

static int on_build_validation(void *self, struct loop_loader *ret, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    return build_loader(ctx, &ctx->valid, "build_validation_data_loader",
                        ctx->type->build_validation_data_loader, ret, err);
}

static int64_t on_batch_records(void *self, const void *batch)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    return ctx->type->get_batch_length ? ctx->type->get_batch_length(ctx->trial, ctx, batch)
                                       : det_batch_length(batch);
}

/* ---- steps (the loop adds the hook's name and the batch to what fails) ---- */

/* Ends a hook: its failure, and the tensors of the step. A NULL that came from a batch (or NULL) is
 * where many a failure began. */
static int step_end(struct det_trial_context *ctx, const struct det_batch *batch,
                    struct det_err *err)
{
    det_cleanup(buf_finish) struct buf missing = BUF_INIT;
    int rc = trial_check(ctx, err);
    det_engine_step_end(ctx->engine);
    if (rc < 0 && batch && batch_missing(batch, &missing))
        det_wrap(err, rc, "%s", buf_str(&missing));
    return rc;
}

static int on_train_batch(void *self, const void *batch, int64_t epoch_idx, int64_t batch_idx,
                          struct loop_metrics *metrics, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    struct det_metrics m = {metrics, ctx, true};
    trial_crash_mark("train_batch", batch_idx);
    trial_amp_begin(ctx);
    ctx->type->train_batch(ctx->trial, ctx, batch, epoch_idx, batch_idx, &m);
    trial_amp_end(ctx);
    trial_overlap_check(ctx);
    int rc = step_end(ctx, batch, err);
    trial_crash_mark("the training loop", batch_idx);
    return rc;
}

static int on_late_metrics(void *self, const double **ret, size_t *ret_n, struct det_err *err)
{
    return trial_late_read(&((struct trial_run *)self)->ctx->late, ret, ret_n, err);
}

static int on_evaluate_batch(void *self, const void *batch, int64_t batch_idx,
                             struct loop_metrics *metrics, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    struct det_metrics m = {metrics, ctx, false};
    SPAN(SPAN_LOOP, "evaluate_batch");
    trial_crash_mark("evaluate_batch", batch_idx);
    trial_amp_begin(ctx);
    ctx->type->evaluate_batch(ctx->trial, ctx, batch, batch_idx, &m);
    trial_amp_end(ctx);
    return step_end(ctx, batch, err);
}

static int on_evaluate_all(void *self, struct loop_metrics *metrics, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    struct det_metrics m = {metrics, ctx, false};
    trial_crash_mark("evaluate_full_dataset", -1);
    trial_amp_begin(ctx);
    ctx->type->evaluate_full_dataset(ctx->trial, ctx, ctx->valid.loader, &m);
    trial_amp_end(ctx);
    return step_end(ctx, NULL, err);
}

static int on_scaler_update(void *self, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    if (ctx->amp)
        det_grad_scaler_update(ctx->scaler);
    return trial_check(ctx, err);
}

static int on_reduction(void *self, const char *metric, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    enum det_reducer r = ctx->type->evaluation_reducer(ctx->trial, ctx, metric);
    int rc = trial_check(ctx, err);
    if (rc < 0)
        return rc;
    if (r < DET_REDUCER_AVG || r > DET_REDUCER_MIN)
        return det_fail(err, DET_EINVAL, "evaluation_reducer: %d for metric %s is no reducer",
                        (int)r, metric);
    return (int)r;
}

static int on_set_training(void *self, bool training, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    for (size_t i = 0; i < ctx->models.n; i++)
        det_module_train(ctx->models.v[i], training);
    if (!training && !ctx->no_grad)
        det_no_grad_begin(ctx->engine);
    else if (training && ctx->no_grad)
        det_no_grad_end(ctx->engine);
    ctx->no_grad = !training;
    int rc = trial_check(ctx, err);
    if (rc == 0 && !training && ctx->config->ranks.size > 1)
        rc = trial_broadcast_buffers(ctx, loop_comm(ctx->loop), err);
    return rc;
}

static int on_broadcast(void *self, struct comm *comm, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    int rc = trial_broadcast(ctx, comm, err);
    return rc < 0 ? rc : trial_overlap_agree(ctx, comm, err);
}

/* ---- state ---- */

static void on_forget_failure(void *self)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    ctx->err = (struct det_err){0};
    det_engine_clear_error(ctx->engine);
}

static int on_before_save(void *self, struct comm *comm, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    int rc = trial_gather_rng(ctx, comm, err);
    return rc < 0 ? rc : trial_gather_grads(ctx, comm, err);
}

static int on_snapshot(void *self, void **ret, struct det_err *err)
{
    struct trial_snapshot *s = NULL;
    trial_crash_mark("saving the state", -1);
    int rc = trial_snapshot(((struct trial_run *)self)->ctx, &s, err);
    *ret = s;
    return rc;
}

static int on_write_snapshot(void *snapshot, const char *dir, json_t *hashes, struct det_err *err)
{
    return trial_snapshot_write(snapshot, dir, hashes, err);
}

static void on_free_snapshot(void *snapshot)
{
    trial_snapshot_destroy(snapshot);
}

static int on_metadata(void *self, json_t *object, struct det_err *err)
{
    json_object_update(object, ((struct trial_run *)self)->ctx->metadata);
    return 0;
}

static int on_load(void *self, const char *dir, struct det_err *err)
{
    trial_crash_mark("loading the state", -1);
    return trial_load(((struct trial_run *)self)->ctx, dir, err);
}

static int on_save_state(void *self, const char *dir, const struct loop_state *s,
                         struct det_err *err)
{
    return trial_save_counters(dir, s, err);
}

static int on_load_state(void *self, const char *dir, struct loop_state *ret, struct det_err *err)
{
    return trial_load_counters(dir, ret, err);
}

/* ---- TensorBoard and the profiler ---- */

static void on_between_batches(void *self, bool ended)
{
    trial_profile_step(((struct trial_run *)self)->ctx);
    if (ended)
        trial_profile_stop(((struct trial_run *)self)->ctx);
    else
        trial_snapshot_prepare(((struct trial_run *)self)->ctx);
}

static void on_write_metrics(void *self, int64_t steps, const struct loop_metrics *metrics,
                             const struct loop_metrics *rows, size_t n)
{
    trial_tensorboard_write(((struct trial_run *)self)->ctx, steps, metrics, rows, n);
}

static const char *on_tensorboard_dir(void *self)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    return ctx ? trial_tensorboard_dir(ctx) : NULL;
}

static const struct det_loop_trial_type table = {
    .create = on_create,
    .destroy = on_destroy,
    .callbacks = on_callbacks,
    .reducers = on_reducers,
    .lr_schedulers = on_lrs,
    .build_training_loader = on_build_training,
    .build_validation_loader = on_build_validation,
    .batch_records = on_batch_records,
    .train_batch = on_train_batch,
    .late_metrics = on_late_metrics,
    .evaluate_batch = on_evaluate_batch,
    .evaluate_all = on_evaluate_all,
    .reduction = on_reduction,
    .scaler_update = on_scaler_update,
    .set_training = on_set_training,
    .broadcast = on_broadcast,
    .forget_failure = on_forget_failure,
    .before_save = on_before_save,
    .snapshot = on_snapshot,
    .write_snapshot = on_write_snapshot,
    .free_snapshot = on_free_snapshot,
    .metadata = on_metadata,
    .load = on_load,
    .save_state = on_save_state,
    .load_state = on_load_state,
    .between_batches = on_between_batches,
    .write_metrics = on_write_metrics,
    .tensorboard_dir = on_tensorboard_dir,
};

struct trial_run *trial_run_create_with(const struct det_trial_type *type,
                                        const struct trial_extra *extra)
{
    struct trial_run *r = det_zalloc(sizeof *r);
    r->type = type;
    r->extra = *extra;
    r->table = table;
    if (!type->evaluate_batch)
        r->table.evaluate_batch = NULL;
    if (!type->evaluate_full_dataset)
        r->table.evaluate_all = NULL;
    if (!type->evaluation_reducer)
        r->table.reduction = NULL;
    return r;
}

void trial_run_destroy(struct trial_run *r)
{
    if (!r)
        return;
    trial_context_destroy(r->ctx);
    free(r);
}

struct trial_run *trial_run_create(const struct det_trial_type *type)
{
    return trial_run_create_with(type, &(const struct trial_extra){0});
}

void trial_run_keep(struct trial_run *r)
{
    r->keep = true;
}

struct det_trial_context *trial_run_context(const struct trial_run *r)
{
    return r->ctx;
}

struct det_loop_trial trial_run_client(struct trial_run *r)
{
    return (struct det_loop_trial){.type = &r->table, .self = r};
}
