/* Facts of the context. */
#include "trial_context.h"

#include "fsx.h"
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct det_engine *det_trial_engine(struct det_trial_context *ctx)
{
    return ctx->engine;
}

int64_t det_trial_global_batch_size(struct det_trial_context *ctx)
{
    return det_trial_per_slot_batch_size(ctx) * ctx->config->ranks.size;
}

int64_t det_trial_per_slot_batch_size(struct det_trial_context *ctx)
{
    int64_t slots = ctx->config->ranks.size, global = det_hparam_i64(ctx, "global_batch_size");
    if (!det_trial_failed(ctx) && global < slots)
        trial_fail(ctx, DET_EINVAL,
                   "hyperparameters.global_batch_size is %lld, but the trial has %lld slots: it "
                   "must be at least one for each",
                   (long long)global, (long long)slots);
    return global / slots;
}

int64_t det_trial_experiment_id(const struct det_trial_context *ctx)
{
    return ctx->config->experiment_id;
}

int64_t det_trial_id(const struct det_trial_context *ctx)
{
    return ctx->config->trial_id;
}

uint32_t det_trial_seed(const struct det_trial_context *ctx)
{
    return ctx->config->seed;
}

int64_t det_trial_initial_batch(const struct det_trial_context *ctx)
{
    return ctx->config->steps_completed;
}

int det_trial_rank(const struct det_trial_context *ctx)
{
    return ctx->config->ranks.rank;
}

int det_trial_size(const struct det_trial_context *ctx)
{
    return ctx->config->ranks.size;
}

int det_trial_local_rank(const struct det_trial_context *ctx)
{
    return ctx->config->ranks.local_rank;
}

int det_trial_local_size(const struct det_trial_context *ctx)
{
    return ctx->config->ranks.local_size;
}

/* A launcher's variable, else what equal shares on all hosts give. */
static int from_env(const char *name, int fallback)
{
    const char *text = getenv(name);
    return text && *text ? (int)strtol(text, NULL, 10) : fallback;
}

int det_trial_cross_rank(const struct det_trial_context *ctx)
{
    return from_env("GROUP_RANK", ctx->config->ranks.rank / ctx->config->ranks.local_size);
}

int det_trial_cross_size(const struct det_trial_context *ctx)
{
    return from_env("GROUP_WORLD_SIZE", ctx->config->ranks.size / ctx->config->ranks.local_size);
}

/* ---- the place in the data ---- */

static bool check_training(struct det_trial_context *ctx, const char *what)
{
    bool yes = loop_epoch_len(ctx->loop) > 0 && loop_batch_idx(ctx->loop) >= 0;
    if (!yes)
        trial_fail(ctx, DET_ESTATE, "%s is not known before training has started", what);
    return yes;
}

bool det_trial_is_epoch_start(struct det_trial_context *ctx)
{
    return check_training(ctx, "det_trial_is_epoch_start()") &&
           loop_batch_idx(ctx->loop) % loop_epoch_len(ctx->loop) == 0;
}

bool det_trial_is_epoch_end(struct det_trial_context *ctx)
{
    return check_training(ctx, "det_trial_is_epoch_end()") &&
           (loop_batch_idx(ctx->loop) + 1) % loop_epoch_len(ctx->loop) == 0;
}

int64_t det_trial_current_train_epoch(struct det_trial_context *ctx)
{
    return check_training(ctx, "det_trial_current_train_epoch()") ? loop_epoch_idx(ctx->loop) : 0;
}

int64_t det_trial_current_train_batch(struct det_trial_context *ctx)
{
    return check_training(ctx, "det_trial_current_train_batch()") ? loop_batch_idx(ctx->loop) : 0;
}

void det_trial_set_stop_requested(struct det_trial_context *ctx, bool stop)
{
    loop_set_stop_requested(ctx->loop, stop);
}

bool det_trial_get_stop_requested(const struct det_trial_context *ctx)
{
    return loop_get_stop_requested(ctx->loop);
}

void *det_trial_arg(const struct det_trial_context *ctx)
{
    return ctx->extra.arg;
}

const char *det_trial_kwargs_json(const struct det_trial_context *ctx)
{
    return ctx->extra.kwargs ? ctx->extra.kwargs : "{}";
}

const char *det_trial_download_dir(struct det_trial_context *ctx)
{
    if (ctx->download_dir)
        return ctx->download_dir;
    const char *tmp = getenv("TMPDIR");
    char *dir = det_asprintf("%s/det-download-rank%d-XXXXXX", tmp && *tmp ? tmp : "/tmp",
                             det_trial_rank(ctx));
    if (!mkdtemp(dir)) {
        trial_fail(ctx, DET_EIO, "make a download directory %s: %s", dir, strerror(errno));
        free(dir);
        return NULL;
    }
    return ctx->download_dir = dir;
}
