/* The trial's TensorBoard writer (docs/contract/loop.md 11): its directory, and the metrics that
 * the loop reports, written as the original does. */
#include "trial_tensorboard.h"

#include "clk.h"
#include "fsx.h"
#include "log.h"
#include "tb.h"
#include "trial_context.h"
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- where ---- */

/* A directory of this allocation and rank, in the task's own, which goes with the task; the store's
 * configuration may say beneath what instead. */
static char *managed_path(const struct det_loop_config *c)
{
    const char *run = getenv("DET_RUN_DIR");
    const char *base = json_str(c->checkpoint_storage, "base_path", run && *run ? run : "/tmp");
    return det_asprintf("%s/tensorboard-%s-%d", base, c->allocation_id, c->ranks.rank);
}

const char *det_trial_tensorboard_path(struct det_trial_context *ctx)
{
    struct trial_tensorboard *t = &ctx->tensorboard;
    const struct det_loop_config *c = ctx->config;
    if (!t->path)
        t->path = c->managed ? managed_path(c) : det_strdup(c->tensorboard_dir);
    return t->path;
}

/* As torch's writer does: runs/Nov21_20-27-02_host. */
static char *local_path(void)
{
    char host[64] = "localhost", when[32];
    time_t now = (time_t)(clk_wall_us() / 1000000);
    struct tm tm;
    gethostname(host, sizeof host - 1);
    strftime(when, sizeof when, "%b%d_%H-%M-%S", localtime_r(&now, &tm));
    return det_asprintf("runs/%s_%s", when, host);
}

const char *trial_tensorboard_place(struct det_trial_context *ctx)
{
    struct trial_tensorboard *t = &ctx->tensorboard;
    const char *path = det_trial_tensorboard_path(ctx);
    if (!path && !t->own)
        t->own = local_path();
    return path ? path : t->own;
}

/* ---- the writer ---- */

/* What goes wrong is said once; the training goes on. */
static void check_writer(struct trial_tensorboard *t)
{
    struct det_err err;
    if (!t->failed && det_tensorboard_error(t->writer, &err) < 0) {
        t->failed = true;
        log_warning("TensorBoard: nothing more is written: %s", err.text);
    }
}

struct det_tensorboard *det_trial_tensorboard(struct det_trial_context *ctx)
{
    struct trial_tensorboard *t = &ctx->tensorboard;
    struct det_err err;
    if (t->writer || det_trial_rank(ctx) != 0)
        return t->writer;
    t->writer = det_tensorboard_create(trial_tensorboard_place(ctx), &err);
    det_cleanup(freep) char *kept = ctx->loop ? loop_tensorboard_kept(ctx->loop) : NULL;
    if (kept && tb_remember(t->writer, kept, &err) < 0)
        log_warning("TensorBoard: %s: steps may be there twice", err.text);
    return t->writer;
}

void det_trial_set_tensorboard_logging(struct det_trial_context *ctx, bool on)
{
    ctx->tensorboard.no_logging = !on;
}

bool det_trial_get_tensorboard_logging(const struct det_trial_context *ctx)
{
    return !ctx->tensorboard.no_logging;
}

void trial_tensorboard_finish(struct det_trial_context *ctx)
{
    struct trial_tensorboard *t = &ctx->tensorboard;
    det_tensorboard_destroy(t->writer);
    if (t->path && ctx->config->managed) /* the store has them */
        det_ignore(fsx_remove_tree(AT_FDCWD, t->path, NULL), "the store has them");
    free(t->path);
    free(t->own);
}

/* ---- metrics ---- */

static void write_scalar(struct det_tensorboard *w, const char *prefix, const struct loop_metric *m,
                         int64_t step)
{
    det_cleanup(buf_finish) struct buf tag = BUF_INIT;
    double v;
    if (!loop_metric_scalar(m, &v))
        return;
    buf_add_str(&tag, "Determined/");
    buf_add_str(&tag, prefix);
    buf_add_str(&tag, m->name);
    det_tensorboard_add_scalar(w, buf_str(&tag), v, step);
}

/* Every batch's metrics, and of the averages what no batch has: the reducers'. */
static void write_training(struct det_tensorboard *w, int64_t steps, const struct loop_metrics *avg,
                           const struct loop_metrics *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < rows[i].n; j++)
            write_scalar(w, "", &rows[i].v[j], steps - (int64_t)(n - i));
    for (size_t j = 0; j < avg->n; j++)
        if (n == 0 || !loop_metrics_find(&rows[0], avg->v[j].name))
            write_scalar(w, "", &avg->v[j], steps);
}

static void write_validation(struct det_tensorboard *w, int64_t steps,
                             const struct loop_metrics *metrics)
{
    for (size_t j = 0; j < metrics->n; j++) {
        bool named = strncmp(metrics->v[j].name, "val", 3) == 0;
        write_scalar(w, named ? "" : "val_", &metrics->v[j], steps);
    }
}

void trial_tensorboard_write(struct det_trial_context *ctx, int64_t steps,
                             const struct loop_metrics *metrics, const struct loop_metrics *rows,
                             size_t n)
{
    bool somewhere = ctx->tensorboard.writer || det_trial_tensorboard_path(ctx);
    struct det_tensorboard *w =
        somewhere && !ctx->tensorboard.no_logging ? det_trial_tensorboard(ctx) : NULL;
    if (!w)
        return;
    if (rows)
        write_training(w, steps, metrics, rows, n);
    else
        write_validation(w, steps, metrics);
    check_writer(&ctx->tensorboard);
}

const char *trial_tensorboard_dir(struct det_trial_context *ctx)
{
    struct trial_tensorboard *t = &ctx->tensorboard;
    det_tensorboard_flush(t->writer);
    if (t->writer)
        check_writer(t);
    return t->path;
}
