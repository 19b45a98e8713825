/*
 * Batch normalisation over NHWC images (Ioffe & Szegedy 2015), with the ReLU after it.
 *
 * The pixels are cut into blocks of BLOCK; each block is summed in float, channel by channel side
 * by side, and the blocks in double and in order, so the sums do not depend on the thread count.
 */
#include "cpu.h"

#include <math.h>
#include <string.h>

#include "mem.h"
#include "ref.h"

#define BLOCK 256

struct norm {
    const struct det_call *c;
    int64_t channels, pixels;
    float *sums;                 /* per block: 2 * channels */
    const float *centre;         /* what the squares are taken around; NULL in the first pass */
    float *scale, *shift, *back; /* y = scale * x + shift; dx = scale * g + shift * x + back */
};

static int norm_init(struct norm *v, const struct det_call *c, const struct det_tensor *x,
                     struct det_err *err)
{
    *v = (struct norm){.c = c, .channels = x->dims[1]};
    v->pixels = (int64_t)x->numel / v->channels;
    int64_t blocks = (v->pixels + BLOCK - 1) / BLOCK;
    size_t floats = (size_t)((2 * blocks + 3) * v->channels);
    v->sums = det_try_alloc(floats * sizeof(float));
    if (!v->sums)
        return det_fail(err, DET_ENOMEM, "no memory for the sums of a batch norm");
    v->scale = v->sums + 2 * blocks * v->channels;
    v->shift = v->scale + v->channels;
    v->back = v->shift + v->channels;
    return 0;
}

static void norm_finish(struct norm *v)
{
    free(v->sums);
}

static void run(struct det_stream *s, const struct norm *v, cpu_range_fn *fn)
{
    cpu_parallel(cpu_device(s)->threads, (v->pixels + BLOCK - 1) / BLOCK, 2, fn, v);
}

static int64_t block_end(const struct norm *v, int64_t block)
{
    return (block + 1) * BLOCK < v->pixels ? (block + 1) * BLOCK : v->pixels;
}

/* Without a centre: sums of x. With: sums of squares around it. */
CPU_CLONES static void sum_blocks(const void *arg, int64_t from, int64_t to)
{
    const struct norm *v = arg;
    int64_t n = v->channels;
    for (int64_t b = from; b < to; b++) {
        float *restrict sum = v->sums + 2 * b * n;
        memset(sum, 0, (size_t)n * sizeof *sum);
        for (int64_t p = b * BLOCK; p < block_end(v, b); p++) {
            const float *restrict x = in_f32(v->c, 0) + p * n, *restrict mid = v->centre;
            if (mid)
                for (int64_t i = 0; i < n; i++)
                    sum[i] += (x[i] - mid[i]) * (x[i] - mid[i]);
            else
                for (int64_t i = 0; i < n; i++)
                    sum[i] += x[i];
        }
    }
}

static double channel_sum(const struct norm *v, int64_t channel)
{
    double sum = 0;
    for (int64_t b = 0; b * BLOCK < v->pixels; b++)
        sum += v->sums[2 * b * v->channels + channel];
    return sum;
}

CPU_CLONES static void apply_blocks(const void *arg, int64_t from, int64_t to)
{
    const struct norm *v = arg;
    int64_t n = v->channels;
    const float *restrict scale = v->scale, *restrict shift = v->shift;
    bool relu = v->c->a.relu;
    for (int64_t p = from * BLOCK; p < block_end(v, to - 1); p++) {
        const float *restrict x = in_f32(v->c, 0) + p * n;
        float *restrict y = out_f32(v->c, 0) + p * n;
        if (relu)
            for (int64_t i = 0; i < n; i++) {
                float value = scale[i] * x[i] + shift[i];
                y[i] = value < 0 ? 0 : value;
            }
        else
            for (int64_t i = 0; i < n; i++)
                y[i] = scale[i] * x[i] + shift[i];
    }
}

static void set_channel(struct norm *v, int64_t i, double mean, double invstd)
{
    double scale = in_f32(v->c, 1)[i] * invstd;
    v->scale[i] = (float)scale;
    v->shift[i] = (float)(in_f32(v->c, 2)[i] - mean * scale);
    out_f32(v->c, 2)[i] = (float)invstd;
}

static void update(float *running, double value, double momentum)
{
    *running = (float)((1 - momentum) * *running + momentum * value);
}

int cpu_batch_norm_train(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(norm_finish) struct norm v;
    int rc = norm_init(&v, c, c->in[0], err);
    if (rc < 0)
        return rc;
    double n = (double)v.pixels;
    run(s, &v, sum_blocks);
    for (int64_t i = 0; i < v.channels; i++)
        out_f32(c, 1)[i] = (float)(channel_sum(&v, i) / n);
    v.centre = out_f32(c, 1);
    run(s, &v, sum_blocks);
    for (int64_t i = 0; i < v.channels; i++) {
        double mean = out_f32(c, 1)[i], var = channel_sum(&v, i) / n;
        set_channel(&v, i, mean, 1 / sqrt(var + c->a.eps));
        update(out_f32(c, 3) + i, mean, c->a.momentum);
        update(out_f32(c, 4) + i, n > 1 ? var * n / (n - 1) : var, c->a.momentum);
    }
    run(s, &v, apply_blocks);
    return 0;
}

int cpu_batch_norm_eval(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(norm_finish) struct norm v;
    int rc = norm_init(&v, c, c->in[0], err);
    if (rc < 0)
        return rc;
    for (int64_t i = 0; i < v.channels; i++) {
        out_f32(c, 1)[i] = in_f32(c, 3)[i];
        set_channel(&v, i, in_f32(c, 3)[i], 1 / sqrt(in_f32(c, 4)[i] + c->a.eps));
    }
    run(s, &v, apply_blocks);
    return 0;
}

/* Sums of g and of g * (x - mean), where g is dy that passed the ReLU. */
CPU_CLONES static void sum_grads(const void *arg, int64_t from, int64_t to)
{
    const struct norm *v = arg;
    int64_t n = v->channels;
    bool relu = v->c->a.relu;
    for (int64_t b = from; b < to; b++) {
        float *restrict sum = v->sums + 2 * b * n, *restrict dot = sum + n;
        memset(sum, 0, (size_t)(2 * n) * sizeof *sum);
        for (int64_t p = b * BLOCK; p < block_end(v, b); p++) {
            const float *dy = in_f32(v->c, 0) + p * n, *x = in_f32(v->c, 1) + p * n;
            const float *y = relu ? in_f32(v->c, 2) + p * n : dy, *mean = v->centre;
            for (int64_t i = 0; i < n; i++) {
                float g = relu && !(y[i] > 0) ? 0 : dy[i];
                sum[i] += g;
                dot[i] += g * (x[i] - mean[i]);
            }
        }
    }
}

CPU_CLONES static void apply_grads(const void *arg, int64_t from, int64_t to)
{
    const struct norm *v = arg;
    int64_t n = v->channels;
    const float *restrict scale = v->scale, *restrict shift = v->shift, *restrict back = v->back;
    bool relu = v->c->a.relu;
    for (int64_t p = from * BLOCK; p < block_end(v, to - 1); p++) {
        const float *dy = in_f32(v->c, 0) + p * n, *x = in_f32(v->c, 1) + p * n;
        const float *y = relu ? in_f32(v->c, 2) + p * n : dy;
        float *restrict dx = out_f32(v->c, 0) + p * n;
        for (int64_t i = 0; i < n; i++) {
            float g = relu && !(y[i] > 0) ? 0 : dy[i];
            dx[i] = scale[i] * g + shift[i] * x[i] + back[i];
        }
    }
}

/* dx = w invstd (g - sum / n - xhat * dw / n), written as scale * g + shift * x + back. */
static void set_grads(struct norm *v, int64_t i)
{
    const struct det_call *c = v->c;
    double n = (double)v->pixels, mean = in_f32(c, 4)[i], invstd = in_f32(c, 5)[i];
    double sum = channel_sum(v, i), dot = channel_sum(v, v->channels + i) * invstd;
    double scale = in_f32(c, 3)[i] * invstd;
    double slope = c->a.train ? -scale * dot * invstd / n : 0;
    v->scale[i] = (float)scale;
    v->shift[i] = (float)slope;
    v->back[i] = (float)(c->a.train ? -scale * sum / n - slope * mean : 0);
    out_f32(c, 1)[i] = (float)dot;
    out_f32(c, 2)[i] = (float)sum;
}

int cpu_batch_norm_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(norm_finish) struct norm v;
    int rc = norm_init(&v, c, c->in[1], err);
    if (rc < 0)
        return rc;
    v.centre = in_f32(c, 4);
    run(s, &v, sum_grads);
    for (int64_t i = 0; i < v.channels; i++)
        set_grads(&v, i);
    if (c->out[0])
        run(s, &v, apply_grads);
    return 0;
}
