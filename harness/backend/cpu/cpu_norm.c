/*
 * Batch normalisation over NHWC images (Ioffe & Szegedy 2015), with the sum and the ReLU after it.
 *
 * The pixels are cut into blocks of BLOCK. Each block gives its means and its squares around them
 * in float, channel by channel side by side, while it is in the cache; the blocks are joined in
 * double and in order (Chan, Golub & LeVeque 1983). So the sums do not depend on the thread count,
 * and the images are read once for the statistics and once to apply them.
 */
#include "cpu.h"

#include <math.h>
#include <string.h>

#include "mem.h"
#include "ref.h"

#define BLOCK 256

struct norm {
    const struct det_call *c;
    int64_t channels, pixels, blocks;
    float *sums;                 /* per block: 2 * channels */
    double *total;               /* 2 * channels */
    float *scale, *shift, *back; /* y = scale * x + shift; dx = scale * g + shift * x + back */
    const float *mean;
};

static int norm_init(struct norm *v, const struct det_call *c, const struct det_tensor *x,
                     struct det_err *err)
{
    *v = (struct norm){.c = c, .channels = x->dims[1]};
    v->pixels = (int64_t)x->numel / v->channels;
    v->blocks = (v->pixels + BLOCK - 1) / BLOCK;
    size_t n = (size_t)v->channels, floats = (2 * (size_t)v->blocks + 3) * n;
    v->total = det_try_alloc(2 * n * sizeof(double) + floats * sizeof(float));
    if (!v->total)
        return det_fail(err, DET_ENOMEM, "no memory for the sums of a batch norm");
    v->sums = (float *)(v->total + 2 * n);
    v->scale = v->sums + 2 * (size_t)v->blocks * n;
    v->shift = v->scale + n;
    v->back = v->shift + n;
    return 0;
}

static void norm_finish(struct norm *v)
{
    free(v->total);
}

static void run(struct det_stream *s, const struct norm *v, cpu_range_fn *fn)
{
    cpu_parallel(cpu_device(s)->threads, v->blocks, 2, fn, v);
}

static int64_t block_end(const struct norm *v, int64_t block)
{
    return (block + 1) * BLOCK < v->pixels ? (block + 1) * BLOCK : v->pixels;
}

/* The means of each block, and the sums of squares around them. */
CPU_CLONES static void block_statistics(const void *arg, int64_t from, int64_t to)
{
    const struct norm *v = arg;
    int64_t n = v->channels;
    for (int64_t b = from; b < to; b++) {
        float *restrict mean = v->sums + 2 * b * n, *restrict squares = mean + n;
        const float *x = in_f32(v->c, 0);
        int64_t first = b * BLOCK, end = block_end(v, b);
        float share = 1 / (float)(end - first);
        memset(mean, 0, (size_t)(2 * n) * sizeof *mean);
        for (int64_t p = first; p < end; p++)
            for (int64_t i = 0; i < n; i++)
                mean[i] += x[p * n + i];
        for (int64_t i = 0; i < n; i++)
            mean[i] *= share;
        for (int64_t p = first; p < end; p++)
            for (int64_t i = 0; i < n; i++)
                squares[i] += (x[p * n + i] - mean[i]) * (x[p * n + i] - mean[i]);
    }
}

/* total: the sums of squares around the means of all, and those means. */
static void join_statistics(struct norm *v)
{
    int64_t n = v->channels;
    double *squares = v->total, *mean = squares + n, seen = 0;
    memset(v->total, 0, 2 * (size_t)n * sizeof *v->total);
    for (int64_t b = 0; b < v->blocks; b++) {
        const float *m = v->sums + 2 * b * n, *s = m + n;
        double count = (double)(block_end(v, b) - b * BLOCK), both = seen + count;
        for (int64_t i = 0; i < n; i++) {
            double apart = m[i] - mean[i];
            mean[i] += apart * count / both;
            squares[i] += s[i] + apart * apart * seen * count / both;
        }
        seen = both;
    }
}

/* Plain sums over the blocks: total[0 .. 2 * channels). */
static void join_sums(struct norm *v)
{
    memset(v->total, 0, 2 * (size_t)v->channels * sizeof *v->total);
    for (int64_t b = 0; b < v->blocks; b++)
        for (int64_t i = 0; i < 2 * v->channels; i++)
            v->total[i] += v->sums[2 * b * v->channels + i];
}

/* One pixel: y = scale * x + shift, with what is added and the ReLU. */
static inline __attribute__((always_inline)) void
apply_pixel(int64_t n, bool relu, const float *restrict scale, const float *restrict shift,
            const float *restrict x, const float *restrict more, float *restrict y)
{
    for (int64_t i = 0; i < n; i++) {
        float value = scale[i] * x[i] + shift[i] + (more ? more[i] : 0);
        y[i] = relu && value < 0 ? 0 : value;
    }
}

CPU_CLONES static void apply_blocks(const void *arg, int64_t from, int64_t to)
{
    const struct norm *v = arg;
    int64_t n = v->channels;
    const float *x = in_f32(v->c, 0), *more = in_f32(v->c, 5);
    float *y = out_f32(v->c, 0);
    for (int64_t at = from * BLOCK * n; at < block_end(v, to - 1) * n; at += n)
        if (more)
            apply_pixel(n, v->c->a.relu, v->scale, v->shift, x + at, more + at, y + at);
        else
            apply_pixel(n, v->c->a.relu, v->scale, v->shift, x + at, NULL, y + at);
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
    run(s, &v, block_statistics);
    join_statistics(&v);
    for (int64_t i = 0; i < v.channels; i++) {
        double mean = v.total[v.channels + i], var = v.total[i] / n;
        out_f32(c, 1)[i] = (float)mean;
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

/* One pixel: g = dy that passed the ReLU, kept in dr where that is wanted, and its sums. */
static inline __attribute__((always_inline)) void
sum_pixel(int64_t n, const float *dy, const float *restrict x, const float *restrict y,
          const float *restrict mean, float *dr, float *restrict sum)
{
    CPU_IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        float g = y && !(y[i] > 0) ? 0 : dy[i];
        sum[i] += g;
        sum[n + i] += g * (x[i] - mean[i]);
        if (dr)
            dr[i] = g;
    }
}

/* Sums of g and of g * (x - mean). */
CPU_CLONES static void sum_grads(const void *arg, int64_t from, int64_t to)
{
    const struct norm *v = arg;
    int64_t n = v->channels;
    const float *dy = in_f32(v->c, 0), *x = in_f32(v->c, 1), *y = in_f32(v->c, 2);
    float *dr = out_f32(v->c, 3);
    for (int64_t b = from; b < to; b++) {
        float *sum = v->sums + 2 * b * n;
        memset(sum, 0, (size_t)(2 * n) * sizeof *sum);
        for (int64_t at = b * BLOCK * n; at < block_end(v, b) * n; at += n)
            if (dr && v->c->a.relu)
                sum_pixel(n, dy + at, x + at, y + at, v->mean, dr + at, sum);
            else if (dr)
                sum_pixel(n, dy + at, x + at, NULL, v->mean, dr + at, sum);
            else if (v->c->a.relu)
                sum_pixel(n, dy + at, x + at, y + at, v->mean, NULL, sum);
            else
                sum_pixel(n, dy + at, x + at, NULL, v->mean, NULL, sum);
    }
}

static inline __attribute__((always_inline)) void grad_pixel(const struct norm *v, const float *g,
                                                             const float *restrict x,
                                                             const float *restrict y, float *dx)
{
    const float *restrict scale = v->scale, *restrict shift = v->shift, *restrict back = v->back;
    int64_t n = v->channels;
    CPU_IN_PLACE
    for (int64_t i = 0; i < n; i++)
        dx[i] = scale[i] * (y && !(y[i] > 0) ? 0 : g[i]) + shift[i] * x[i] + back[i];
}

CPU_CLONES static void apply_grads(const void *arg, int64_t from, int64_t to)
{
    const struct norm *v = arg;
    const float *x = in_f32(v->c, 1), *y = in_f32(v->c, 2), *dr = out_f32(v->c, 3);
    const float *g = dr ? dr : in_f32(v->c, 0);
    float *dx = out_f32(v->c, 0);
    int64_t n = v->channels;
    for (int64_t at = from * BLOCK * n; at < block_end(v, to - 1) * n; at += n)
        if (v->c->a.relu && !dr)
            grad_pixel(v, g + at, x + at, y + at, dx + at);
        else
            grad_pixel(v, g + at, x + at, NULL, dx + at);
}

/* dx = w invstd (g - sum / n - xhat * dw / n), written as scale * g + shift * x + back. */
static void set_grads(struct norm *v, int64_t i)
{
    const struct det_call *c = v->c;
    double n = (double)v->pixels, mean = in_f32(c, 4)[i], invstd = in_f32(c, 5)[i];
    double sum = v->total[i], dot = v->total[v->channels + i] * invstd;
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
    v.mean = in_f32(c, 4);
    run(s, &v, sum_grads);
    join_sums(&v);
    for (int64_t i = 0; i < v.channels; i++)
        set_grads(&v, i);
    if (c->out[0])
        run(s, &v, apply_grads);
    return 0;
}
