/* Callbacks: the trial's hooks as the loop calls them. A hook that is NULL stays NULL, so that the
 * loop does nothing for it. */
#include "span.h"
#include "trial_context.h"
#include "trial_crash.h"

#include <stdio.h>
#include <string.h>

void det_trial_add_callback(struct det_trial_context *ctx, const struct det_callback *cb)
{
    if (!ctx->adding)
        trial_fail(ctx, DET_ESTATE, "det_trial_add_callback: only build_callbacks may add one");
    if (!cb->name || !*cb->name)
        trial_fail(ctx, DET_EINVAL, "a callback needs a name: its state is saved under it");
    for (size_t i = 0; cb->name && i < ctx->callbacks.n; i++)
        if (strcmp(ctx->callbacks.v[i]->name, cb->name) == 0)
            trial_fail(ctx, DET_EINVAL, "two callbacks are named \"%s\"", cb->name);
    struct trial_callback *c = det_zalloc(sizeof *c);
    c->ctx = ctx;
    c->cb = *cb;
    c->name = det_strdup(cb->name ? cb->name : "");
    c->cb.name = c->name;
    vec_push(&ctx->callbacks, c);
}

static int64_t began_ns(void)
{
    return span_on() ? span_now_ns() : 0;
}

/* "callbacks.early.on_training_start", where a profiler listens. */
static void tell_span(const struct trial_callback *c, const char *hook, int64_t start_ns)
{
    char name[200];
    if (!start_ns)
        return;
    snprintf(name, sizeof name, "callbacks.%.100s.%s", c->name, hook);
    span_tell(SPAN_LOOP, name, NULL, start_ns);
}

/* call_<hook>(): the hook's arguments are those of the loop's, but for metrics. */
#define CALL(hook, params, ...)                                                                    \
    static int call_##hook params                                                                  \
    {                                                                                              \
        struct trial_callback *c = self;                                                           \
        trial_crash_mark(#hook " of a callback", loop_batch_idx(c->ctx->loop));                    \
        int64_t start_ns = began_ns();                                                             \
        c->cb.hook(__VA_ARGS__);                                                                   \
        tell_span(c, #hook, start_ns);                                                             \
        return trial_check(c->ctx, err);                                                           \
    }

CALL(on_trial_startup,
     (void *self, int64_t first_batch_idx, const char *checkpoint_uuid, struct det_err *err),
     c->cb.self, first_batch_idx, checkpoint_uuid)
CALL(on_training_start, (void *self, struct det_err *err), c->cb.self)
CALL(on_training_epoch_start, (void *self, int64_t epoch_idx, struct det_err *err), c->cb.self,
     epoch_idx)
CALL(on_training_epoch_end, (void *self, int64_t epoch_idx, struct det_err *err), c->cb.self,
     epoch_idx)
CALL(on_validation_start, (void *self, struct det_err *err), c->cb.self)
CALL(on_validation_epoch_start, (void *self, struct det_err *err), c->cb.self)
CALL(on_validation_end, (void *self, const struct loop_metrics *metrics, struct det_err *err),
     c->cb.self, &(const struct det_metrics){(struct loop_metrics *)metrics, c->ctx, false})
CALL(on_checkpoint_write_end, (void *self, const char *dir, struct det_err *err), c->cb.self, dir)
CALL(on_checkpoint_upload_end, (void *self, const char *uuid, struct det_err *err), c->cb.self,
     uuid)
CALL(on_trial_shutdown, (void *self, struct det_err *err), c->cb.self)

/* The same rows as a trial sees metrics. */
struct rows {
    struct det_metrics *m;
    const struct det_metrics **v;
};

static struct rows rows_of(struct det_trial_context *ctx, const struct loop_metrics *rows, size_t n)
{
    struct rows r = {det_alloc(n * sizeof *r.m + 1), det_alloc(n * sizeof *r.v + 1)};
    for (size_t i = 0; i < n; i++) {
        r.m[i] = (struct det_metrics){(struct loop_metrics *)&rows[i], ctx, false};
        r.v[i] = &r.m[i];
    }
    return r;
}

static void rows_free(struct rows *r)
{
    free(r->m);
    free(r->v);
}

static int call_on_training_workload_end(void *self, const struct loop_metrics *avg,
                                         const struct loop_metrics *batches, size_t n,
                                         struct det_err *err)
{
    struct trial_callback *c = self;
    const struct det_metrics m = {(struct loop_metrics *)avg, c->ctx, false};
    struct rows r = rows_of(c->ctx, batches, n);
    trial_crash_mark("on_training_workload_end of a callback", loop_batch_idx(c->ctx->loop));
    int64_t start_ns = began_ns();
    c->cb.on_training_workload_end(c->cb.self, &m, r.v, n);
    tell_span(c, "on_training_workload_end", start_ns);
    rows_free(&r);
    return trial_check(c->ctx, err);
}

static int call_on_validation_epoch_end(void *self, const struct loop_metrics *outputs, size_t n,
                                        struct det_err *err)
{
    struct trial_callback *c = self;
    struct rows r = rows_of(c->ctx, outputs, n);
    trial_crash_mark("on_validation_epoch_end of a callback", loop_batch_idx(c->ctx->loop));
    int64_t start_ns = began_ns();
    c->cb.on_validation_epoch_end(c->cb.self, r.v, n);
    tell_span(c, "on_validation_epoch_end", start_ns);
    rows_free(&r);
    return trial_check(c->ctx, err);
}

#define IF_SET(hook) .hook = c->cb.hook ? call_##hook : NULL

void trial_fill_callbacks(struct det_trial_context *ctx)
{
    ctx->loop_callbacks.n = 0;
    for (size_t i = 0; i < ctx->callbacks.n; i++) {
        struct trial_callback *c = ctx->callbacks.v[i];
        struct loop_callback x = {
            .self = c,
            IF_SET(on_trial_startup),
            IF_SET(on_training_start),
            IF_SET(on_training_epoch_start),
            IF_SET(on_training_epoch_end),
            IF_SET(on_training_workload_end),
            IF_SET(on_validation_start),
            IF_SET(on_validation_epoch_start),
            IF_SET(on_validation_epoch_end),
            IF_SET(on_validation_end),
            IF_SET(on_checkpoint_write_end),
            IF_SET(on_checkpoint_upload_end),
            IF_SET(on_trial_shutdown),
        };
        vec_push(&ctx->loop_callbacks, x);
    }
}
