/* A trial's context: made with its engine and the user's object, used by one run of the loop or by
 * several in turn, destroyed. */
#include "fsx.h"
#include "trial_context.h"
#include "trial_crash.h"
#include "trial_device.h"
#include "trial_loop.h"
#include "trial_state_impl.h"
#include "trial_tensorboard.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int trial_type_check(const struct det_trial_type *type, const char *name, struct det_err *err)
{
    if (type->det_api_version != DET_API_VERSION)
        return det_fail(err, DET_EINVAL,
                        "%s was compiled for version %d of the trial API, this det-harness has %d: "
                        "compile it again",
                        name, type->det_api_version, DET_API_VERSION);
    if (type->self_bytes > (size_t)1 << 30)
        return det_fail(err, DET_EINVAL, "%s.self_bytes is %zu", name, type->self_bytes);
    if (type->self_bytes == 0)
        return det_fail(err, DET_EINVAL,
                        "%s.self_bytes is 0, which leaves no room for what create keeps: write "
                        ".self_bytes = sizeof of the trial's struct",
                        name);
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

/* ---- making ---- */

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
        struct loop_lr x = {.self = l->lr,
                            .mode = (enum loop_step_mode)l->mode,
                            .frequency = l->frequency,
                            .step = on_lr_step};
        vec_push(&ctx->loop_lrs, x);
    }
}

int trial_context_create(const struct det_trial_type *type, const struct det_loop_config *config,
                         struct loop *loop, const struct trial_extra *extra,
                         struct det_trial_context **ret, struct det_err *err)
{
    struct det_trial_context *ctx = *ret = det_zalloc(sizeof *ctx);
    ctx->type = type;
    ctx->extra = *extra;
    ctx->train.perm_epoch = ctx->valid.perm_epoch = -1;
    trial_context_attach(ctx, config, loop);
    int rc = make_engine(ctx, err);
    if (rc < 0)
        return rc;
    ctx->trial = det_zalloc(type->self_bytes + 1);
    trial_crash_mark("create", -1);
    type->create(ctx->trial, ctx);
    if ((rc = trial_check(ctx, err)) < 0 || (rc = trial_check_wrapped(ctx, err)) < 0)
        return rc;
    det_engine_step_end(ctx->engine);
    fill_lrs(ctx);
    ctx->made = true;
    return 0;
}

/* ---- from run to run ---- */

void trial_context_attach(struct det_trial_context *ctx, const struct det_loop_config *config,
                          struct loop *loop)
{
    trial_crash_watch(ctx);
    ctx->config = config;
    ctx->loop = loop;
    ctx->err = (struct det_err){0};
    ctx->reducing = false;
    if (ctx->engine)
        det_engine_clear_error(ctx->engine);
}

static void drop_callbacks(struct det_trial_context *ctx)
{
    for (size_t i = 0; i < ctx->callbacks.n; i++) {
        free(ctx->callbacks.v[i]->name);
        free(ctx->callbacks.v[i]);
    }
    ctx->callbacks.n = 0;
}

void trial_context_detach(struct det_trial_context *ctx)
{
    trial_loader_finish(&ctx->train);
    trial_loader_finish(&ctx->valid);
    trial_profile_finish(ctx);
    if (ctx->engine)
        det_engine_step_end(ctx->engine);
    trial_device_finish(ctx); /* it belongs to the run's communicator, and to the engine's stream */
    drop_callbacks(ctx);
    ctx->loop = NULL;
}

/* ---- the end ---- */

static void destroy_wrapped(struct det_trial_context *ctx)
{
    for (size_t i = 0; i < ctx->lrs.n; i++)
        det_lr_destroy(ctx->lrs.v[i].lr);
    det_grad_scaler_destroy(ctx->scaler);
    for (size_t i = 0; i < ctx->optims.n; i++)
        det_optim_destroy(ctx->optims.v[i]);
    for (size_t i = 0; i < ctx->models.n; i++)
        det_module_destroy(ctx->models.v[i]);
    for (size_t i = 0; i < ctx->reducers.n; i++) {
        vec_free(&ctx->reducers.v[i]->values);
        free(ctx->reducers.v[i]->name);
        free(ctx->reducers.v[i]);
    }
}

static void free_context(struct det_trial_context *ctx)
{
    trial_crash_watch(NULL);
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
        det_ignore(fsx_remove_tree(AT_FDCWD, ctx->download_dir, NULL),
                   "it lies in the run's own directory");
    free(ctx->download_dir);
    comm_blobs_finish(&ctx->open_grads);
    comm_blobs_finish(&ctx->rank_calls);
    state_staging_finish(&ctx->staging);
    json_decref(ctx->metadata);
    comm_blobs_finish(&ctx->gathered);
    free(ctx->broadcast);
    free(ctx->hparams_text);
    free(ctx->config_text);
    free(ctx->data_text);
    free(ctx->trial);
    free(ctx);
}

void trial_context_destroy(struct det_trial_context *ctx)
{
    if (!ctx)
        return;
    trial_crash_mark("destroy", -1);
    trial_context_detach(ctx); /* first: a loader's threads may use what the trial frees */
    if (ctx->trial && ctx->type->destroy)
        ctx->type->destroy(ctx->trial, ctx);
    if (ctx->engine)
        det_engine_step_end(ctx->engine);
    destroy_wrapped(ctx);
    trial_late_finish(&ctx->late);
    det_engine_destroy(ctx->engine);
    free_context(ctx);
}
