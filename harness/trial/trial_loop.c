#include "trial_loop.h"

#include "fsx.h"
#include "span.h"
#include "trial_context.h"
#include "trial_crash.h"
#include "trial_device.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

struct trial_run {
    const struct det_trial_type *type;
    struct det_loop_trial_type table; /* the static one, less what this trial does not have */
    struct det_trial_context *ctx;    /* from create to destroy */
};

int trial_type_check(const struct det_trial_type *type, const char *name, struct det_err *err)
{
    if (type->det_api_version != DET_API_VERSION)
        return det_fail(err, DET_EINVAL,
                        "%s was compiled for version %d of the trial API, this det-harness has %d: "
                        "compile it again",
                        name, type->det_api_version, DET_API_VERSION);
    if (type->self_bytes > (size_t)1 << 30)
        return det_fail(err, DET_EINVAL, "%s.self_bytes is %zu", name, type->self_bytes);
    const struct {
        bool there;
        const char *hook;
    } required[] = {
        {type->create, "create"},
        {type->build_training_data_loader, "build_training_data_loader"},
        {type->build_validation_data_loader, "build_validation_data_loader"},
        {type->train_batch, "train_batch"},
    };
    for (size_t i = 0; i < DET_ARRAY_LEN(required); i++)
        if (!required[i].there)
            return det_fail(err, DET_EINVAL, "%s has no %s", name, required[i].hook);
    if (!type->evaluate_batch == !type->evaluate_full_dataset)
        return det_fail(err, DET_EINVAL,
                        "%s needs exactly one of evaluate_batch and evaluate_full_dataset", name);
    return 0;
}

/* ---- life ---- */

/* "cuda" where the agent gave GPUs to the task, else the CPU; DET_DEVICE overrides. */
static const char *device_name(const struct det_loop_config *c, char *text, size_t n)
{
    const char *wish = getenv("DET_DEVICE"), *gpus = getenv("CUDA_VISIBLE_DEVICES");
    if (wish && *wish)
        return wish;
    if (!gpus || !*gpus || strcmp(gpus, "-1") == 0 || strcmp(gpus, "NoDevFiles") == 0)
        return "cpu";
    snprintf(text, n, "cuda:%d", c->ranks.local_rank);
    return text;
}

static int make_engine(struct det_trial_context *ctx, struct det_err *err)
{
    char text[32];
    struct det_engine_options o = {.device = device_name(ctx->config, text, sizeof text),
                                   .seed = ctx->config->seed};
    return det_engine_create(&o, &ctx->engine, err);
}

static void fill_lrs(struct det_trial_context *ctx);

static int check_wrapped(struct det_trial_context *ctx, struct det_err *err)
{
    if (ctx->models.n == 0)
        return det_fail(err, DET_EINVAL, "create() wrapped no model (det_trial_wrap_model)");
    if (ctx->optims.n == 0)
        return det_fail(err, DET_EINVAL,
                        "create() wrapped no optimizer (det_trial_wrap_optimizer)");
    return 0;
}

static int on_create(void *self, struct loop *loop, struct det_err *err)
{
    struct trial_run *r = self;
    struct det_trial_context *ctx = r->ctx = det_zalloc(sizeof *ctx);
    ctx->type = r->type;
    ctx->loop = loop;
    ctx->config = loop_config(loop);
    ctx->train.perm_epoch = ctx->valid.perm_epoch = -1;
    int rc = make_engine(ctx, err);
    if (rc < 0)
        return rc;
    ctx->trial = det_zalloc(r->type->self_bytes + 1);
    trial_crash_mark("create", -1);
    r->type->create(ctx->trial, ctx);
    if ((rc = trial_check(ctx, err)) < 0 || (rc = check_wrapped(ctx, err)) < 0)
        return rc;
    det_engine_step_end(ctx->engine);
    fill_lrs(ctx);
    return 0;
}

static void destroy_wrapped(struct det_trial_context *ctx)
{
    trial_device_finish(ctx); /* before the engine's stream goes */
    for (size_t i = 0; i < ctx->lrs.n; i++)
        det_lr_destroy(ctx->lrs.v[i].lr);
    for (size_t i = 0; i < ctx->optims.n; i++)
        det_optim_destroy(ctx->optims.v[i]);
    for (size_t i = 0; i < ctx->models.n; i++)
        det_module_destroy(ctx->models.v[i]);
    for (size_t i = 0; i < ctx->callbacks.n; i++) {
        free(ctx->callbacks.v[i]->name);
        free(ctx->callbacks.v[i]);
    }
    for (size_t i = 0; i < ctx->reducers.n; i++) {
        vec_free(&ctx->reducers.v[i]->values);
        free(ctx->reducers.v[i]->name);
        free(ctx->reducers.v[i]);
    }
}

static void free_context(struct det_trial_context *ctx)
{
    vec_free(&ctx->models);
    vec_free(&ctx->optims);
    vec_free(&ctx->optim_options);
    vec_free(&ctx->lrs);
    vec_free(&ctx->reducers);
    vec_free(&ctx->callbacks);
    vec_free(&ctx->loop_lrs);
    vec_free(&ctx->loop_reducers);
    vec_free(&ctx->loop_callbacks);
    trial_tensorboard_finish(ctx);
    if (ctx->download_dir)
        fsx_remove_tree(AT_FDCWD, ctx->download_dir, NULL);
    free(ctx->download_dir);
    comm_blobs_finish(&ctx->open_grads);
    json_decref(ctx->metadata);
    comm_blobs_finish(&ctx->gathered);
    free(ctx->broadcast);
    free(ctx->hparams_text);
    free(ctx->config_text);
    free(ctx->data_text);
    free(ctx->trial);
    free(ctx);
}

static void on_destroy(void *self)
{
    struct trial_run *r = self;
    struct det_trial_context *ctx = det_take(r->ctx);
    if (!ctx)
        return;
    trial_crash_mark("destroy", -1);
    trial_loader_finish(&ctx->train);
    trial_loader_finish(&ctx->valid);
    trial_profile_finish(ctx);
    if (ctx->trial && ctx->type->destroy)
        ctx->type->destroy(ctx->trial, ctx);
    if (ctx->engine)
        det_engine_step_end(ctx->engine);
    destroy_wrapped(ctx);
    det_engine_destroy(ctx->engine);
    free_context(ctx);
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


static int on_lr_step(void *self, struct det_err *err)
{
    struct det_lr *lr = self;
    det_lr_step(lr);
    return det_engine_error(det_optim_engine(det_lr_optim(lr)), err);
}

static void fill_lrs(struct det_trial_context *ctx)
{
    for (size_t i = 0; i < ctx->lrs.n; i++) {
        const struct trial_lr *l = &ctx->lrs.v[i];
        struct loop_lr x = {.self = l->lr, .mode = (enum loop_step_mode)l->mode,
                            .frequency = l->frequency, .step = on_lr_step};
        vec_push(&ctx->loop_lrs, x);
    }
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

/* Ends a hook: its failure, and the tensors of the step. */
static int step_end(struct det_trial_context *ctx, struct det_err *err)
{
    int rc = trial_check(ctx, err);
    det_engine_step_end(ctx->engine);
    return rc;
}

static int on_train_batch(void *self, const void *batch, int64_t epoch_idx, int64_t batch_idx,
                          struct loop_metrics *metrics, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    struct det_metrics m = {metrics, ctx};
    trial_crash_mark("train_batch", batch_idx);
    ctx->type->train_batch(ctx->trial, ctx, batch, epoch_idx, batch_idx, &m);
    int rc = step_end(ctx, err);
    trial_crash_mark("the training loop", batch_idx);
    return rc;
}

static int on_evaluate_batch(void *self, const void *batch, int64_t batch_idx,
                             struct loop_metrics *metrics, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    struct det_metrics m = {metrics, ctx};
    SPAN(SPAN_LOOP, "evaluate_batch");
    trial_crash_mark("evaluate_batch", batch_idx);
    ctx->type->evaluate_batch(ctx->trial, ctx, batch, batch_idx, &m);
    return step_end(ctx, err);
}

static int on_evaluate_all(void *self, struct loop_metrics *metrics, struct det_err *err)
{
    struct det_trial_context *ctx = ((struct trial_run *)self)->ctx;
    struct det_metrics m = {metrics, ctx};
    trial_crash_mark("evaluate_full_dataset", -1);
    ctx->type->evaluate_full_dataset(ctx->trial, ctx, ctx->valid.loader, &m);
    return step_end(ctx, err);
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
    return trial_broadcast(((struct trial_run *)self)->ctx, comm, err);
}

/* ---- state ---- */

static int on_before_save(void *self, struct comm *comm, struct det_err *err)
{
    return trial_gather_grads(((struct trial_run *)self)->ctx, comm, err);
}

static int on_save(void *self, const char *dir, struct det_err *err)
{
    trial_crash_mark("saving the state", -1);
    return trial_save(((struct trial_run *)self)->ctx, dir, err);
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

static void on_between_batches(void *self)
{
    trial_profile_step(((struct trial_run *)self)->ctx);
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
    .evaluate_batch = on_evaluate_batch,
    .evaluate_all = on_evaluate_all,
    .reduction = on_reduction,
    .set_training = on_set_training,
    .broadcast = on_broadcast,
    .before_save = on_before_save,
    .save = on_save,
    .metadata = on_metadata,
    .load = on_load,
    .save_state = on_save_state,
    .load_state = on_load_state,
    .between_batches = on_between_batches,
    .write_metrics = on_write_metrics,
    .tensorboard_dir = on_tensorboard_dir,
};

struct trial_run *trial_run_create(const struct det_trial_type *type)
{
    struct trial_run *r = det_zalloc(sizeof *r);
    r->type = type;
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
    on_destroy(r);
    free(r);
}

struct det_loop_trial trial_run_client(struct trial_run *r)
{
    return (struct det_loop_trial){.type = &r->table, .self = r};
}
