/*
 * A trial whose state is hyperparameter `mib` mebibytes and whose batches train, for `batch_ms`
 * each, a small part of it. After each save (every `every` batches) it prints what
 * bench/checkpoint.py reads:
 *
 *     SAVE steps stall_s memcpy_s peak_kib ended_us
 *
 * stall_s is from the end of the batch before the save to the start of the next one; ended_us that
 * end by the wall clock; memcpy_s one copy of that many bytes; peak_kib the process's resident set
 * at its largest so far, after each save once more. On a GPU its work is waited for at both ends of
 * the stall, and there is no memcpy: 0.
 */
#include <det/trial.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct saver {
    struct det_module *work;
    struct det_optim *sgd;
    struct det_tensor *weight;
    char *copy;
    size_t bytes;
    int64_t every;
    double batch_s, ended_s, ended_wall_s; /* 0: no save is due */
};

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void create(void *self, struct det_trial_context *ctx)
{
    struct saver *s = self;
    struct det_engine *e = det_trial_engine(ctx);
    int64_t mib = det_hparam_i64(ctx, "mib");
    struct det_module *net = det_nn_module(e);
    struct det_module *state =
        det_module_add(net, "state", det_nn_linear(e, 256, mib * 1024, .no_bias = true));
    s->work = det_module_add(net, "work", det_nn_linear(e, 64, 64));
    det_trial_wrap_model(ctx, net);
    s->sgd = det_trial_wrap_optimizer(ctx, det_sgd(net, .lr = 0.1));
    s->weight = det_module_tensor(state, "weight");
    s->bytes = (size_t)mib << 20;
    s->every = det_hparam_i64(ctx, "every");
    s->batch_s = det_hparam_f64(ctx, "batch_ms") / 1000;
    s->copy = calloc(1, s->bytes);
    if (s->copy)
        memset(s->copy, 1, s->bytes);
}

static void destroy(void *self, struct det_trial_context *ctx)
{
    free(((struct saver *)self)->copy);
}

static struct det_data_loader *loader(void *self, struct det_trial_context *ctx)
{
    static const float x[8 * 64];
    static const int64_t dims[] = {64};
    struct det_dataset *ds = det_dataset_create(8, det_trial_err(ctx));
    det_dataset_add(ds, "x", DET_F32, 1, dims, x, det_trial_err(ctx));
    return det_data_loader(ds, det_trial_err(ctx), .batch_size = 8);
}

/* VmHWM of this process, in KiB; 0 where there is no such line. */
static long peak_kib(void)
{
    char line[256];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        sscanf(line, "VmHWM: %ld", &kib);
    if (f)
        fclose(f);
    return kib;
}

/* Returns when the device has done all that was asked of it. */
static void wait_for_device(struct det_engine *e)
{
    det_item(e, det_zeros(e, DET_F32, 0, NULL));
}

static double time_memcpy(struct saver *s)
{
    double begun = now(CLOCK_MONOTONIC);
    if (!det_tensor_is_host(s->weight))
        return 0;
    memcpy(s->copy, det_tensor_data(s->weight), s->bytes);
    return now(CLOCK_MONOTONIC) - begun;
}

static void tell_save(struct saver *s, int64_t steps)
{
    double stall = now(CLOCK_MONOTONIC) - s->ended_s;
    double copy = time_memcpy(s);
    printf("SAVE %lld %.6f %.6f %ld %.0f\n", (long long)steps, stall, copy, peak_kib(),
           s->ended_wall_s * 1e6);
    fflush(stdout);
    s->ended_s = 0;
}

static void train_once(struct saver *s, struct det_trial_context *ctx,
                       const struct det_batch *batch)
{
    struct det_engine *e = det_trial_engine(ctx);
    struct det_tensor *out = det_forward(s->work, det_batch_tensor(batch, "x"));
    det_trial_backward(ctx, det_mean(e, det_mul(e, out, out)));
    det_trial_step_optimizer(ctx, s->sgd);
}

static void train_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                        int64_t epoch_idx, int64_t batch_idx, struct det_metrics *metrics)
{
    struct saver *s = self;
    double begun = now(CLOCK_MONOTONIC);
    if (s->ended_s > 0) {
        wait_for_device(det_trial_engine(ctx));
        tell_save(s, batch_idx);
    }
    do
        train_once(s, ctx, batch);
    while (now(CLOCK_MONOTONIC) - begun < s->batch_s);
    if ((batch_idx + 1) % s->every == 0) {
        wait_for_device(det_trial_engine(ctx));
        s->ended_s = now(CLOCK_MONOTONIC);
        s->ended_wall_s = now(CLOCK_REALTIME);
    }
}

static void evaluate_batch(void *self, struct det_trial_context *ctx, const struct det_batch *batch,
                           int64_t batch_idx, struct det_metrics *metrics)
{
    det_metrics_f64(metrics, "loss", 0);
}

const struct det_trial_type SaverTrial = {
    .det_api_version = DET_API_VERSION,
    .self_bytes = sizeof(struct saver),
    .create = create,
    .destroy = destroy,
    .build_training_data_loader = loader,
    .build_validation_data_loader = loader,
    .train_batch = train_batch,
    .evaluate_batch = evaluate_batch,
};
