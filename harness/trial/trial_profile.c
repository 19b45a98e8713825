/* The trial's profiler (context.set_profiler): its schedule against the loop's batches, its
 * files. */
#include "clk.h"
#include "fsx.h"
#include "log.h"
#include "profile.h"
#include "trial_context.h"
#include "trial_tensorboard.h"
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#define ROWS 20

struct trial_profile {
    struct profile p; /* its listener is the process's */
    size_t rows;
    bool started, failed;
    struct buf summary;
};

void det_trial_set_profiler_opt(struct det_trial_context *ctx, const struct det_profiler_options *o)
{
    if (o->skip_first < 0 || o->wait < 0 || o->warmup < 0 || o->active < 0 || o->repeat < 0 ||
        o->rows < 0) {
        trial_fail(ctx, DET_EINVAL, "det_trial_set_profiler: no number may be negative");
        return;
    }
    if (ctx->profile || loop_batch_idx(ctx->loop) >= 0) {
        trial_fail(ctx, DET_ESTATE,
                   "det_trial_set_profiler: once, and before training starts (in create)");
        return;
    }
    const struct profile_schedule s = {o->skip_first, o->wait, o->warmup, o->active ? o->active : 1,
                                       o->repeat};
    ctx->profile = det_zalloc(sizeof *ctx->profile);
    ctx->profile->rows = o->rows ? (size_t)o->rows : ROWS;
    profile_init(&ctx->profile->p, &s, !o->no_shapes, !o->no_memory, !o->no_sync);
}

const char *det_trial_profiler_summary(const struct det_trial_context *ctx)
{
    return ctx->profile && ctx->profile->summary.len ? buf_str(&ctx->profile->summary) : NULL;
}

static int write_trace(struct det_trial_context *ctx, struct det_err *err)
{
    char host[64] = "localhost", process[40];
    det_cleanup(buf_finish) struct buf text = BUF_INIT;
    const char *dir = trial_tensorboard_place(ctx);
    int rank = det_trial_rank(ctx);
    gethostname(host, sizeof host - 1);
    snprintf(process, sizeof process, "rank %d", rank);
    profile_write_trace(&ctx->profile->p, process, (int)getpid(), &text);
    det_cleanup(freep) char *path =
        det_asprintf("%s/%s#%d.%" PRId64 ".pt.trace.json", dir, host, rank, clk_wall_us() / 1000);
    int rc = fsx_mkdirs(AT_FDCWD, dir, 0755, err);
    return rc < 0 ? rc : fsx_write_atomic(AT_FDCWD, path, buf_str(&text), text.len, 0644, err);
}

/* A trace that cannot be written is said once and does not end the trial. */
static void save_trace(struct det_trial_context *ctx)
{
    struct trial_profile *t = ctx->profile;
    struct det_err err;
    if (write_trace(ctx, &err) < 0 && !t->failed) {
        log_warning("profiler: %s", err.text);
        t->failed = true;
    }
    buf_clear(&t->summary);
    profile_write_table(&t->p, t->rows, &t->summary);
    det_tensorboard_add_text(det_trial_tensorboard(ctx), "profiler", buf_str(&t->summary),
                             loop_batches_trained(ctx->loop));
}

void trial_profile_step(struct det_trial_context *ctx)
{
    struct trial_profile *t = ctx->profile;
    if (!t)
        return;
    if (!t->started) {
        t->started = true;
        profile_start(&t->p);
    } else if (profile_step(&t->p)) {
        save_trace(ctx);
        profile_next(&t->p);
    }
}

void trial_profile_stop(struct det_trial_context *ctx)
{
    if (ctx->profile && profile_stop(&ctx->profile->p))
        save_trace(ctx);
}

void trial_profile_finish(struct det_trial_context *ctx)
{
    struct trial_profile *t = det_take(ctx->profile);
    if (!t)
        return;
    profile_finish(&t->p);
    buf_finish(&t->summary);
    free(t);
}
