/*
 * Batch normalisation over NHWC images (Ioffe & Szegedy 2015), with the sum and the ReLU after it.
 *
 * The pixels are cut into blocks of BLOCK. Each block gives its means and its squares around them
 * in float, channel by channel side by side, while it is in the cache; the blocks are joined in
 * double and in order (Chan, Golub & LeVeque 1983). So the sums do not depend on the thread count,
 * and the images are read once for the statistics and once to apply them. What passed the ReLU is
 * known from scale * x + shift again, by the same operations, so that the gradient need not read y.
 */
#include "cpu_real.h"

#include <string.h>

#include "mem.h"

#define BLOCK 256

struct norm {
    const struct det_call *c;
    int64_t channels, pixels, blocks;
    real *sums;          /* per block: 2 * channels */
    double *total;       /* 2 * channels */
    real *scale, *shift; /* y = scale * x + shift */
    real *slope, *back;  /* dx = scale * g + slope * x + back */
    const real *mean;
};

static int norm_init(struct norm *v, const struct det_call *c, const struct det_tensor *x,
                     struct det_err *err)
{
    *v = (struct norm){.c = c, .channels = x->dims[1]};
    v->pixels = (int64_t)x->numel / v->channels;
    v->blocks = (v->pixels + BLOCK - 1) / BLOCK;
    size_t n = (size_t)v->channels, floats = (2 * (size_t)v->blocks + 4) * n;
    v->total = det_try_alloc(2 * n * sizeof(double) + floats * sizeof(real));
    if (!v->total)
        return det_fail(err, DET_ENOMEM, "no memory for the sums of a batch norm");
    v->sums = (real *)(v->total + 2 * n);
    v->scale = v->sums + 2 * (size_t)v->blocks * n;
    v->shift = v->scale + n;
    v->slope = v->shift + n;
    v->back = v->slope + n;
    return 0;
}

static void norm_finish(struct norm *v)
{
    free(v->total);
}

static void run_blocks(struct det_stream *s, const struct norm *v, cpu_range_fn *fn)
{
    cpu_parallel(cpu_device(s)->threads, v->blocks, 2, fn, v);
}

static int64_t block_end(const struct norm *v, int64_t block)
{
    return (block + 1) * BLOCK < v->pixels ? (block + 1) * BLOCK : v->pixels;
}

/* sum += the rows of x [rows, n], four at once: a sum is loaded and stored for each. */
static inline __attribute__((always_inline)) void
add_rows(int64_t n, int64_t rows, const real *restrict x, real *restrict sum)
{
    for (; rows >= 4; rows -= 4, x += 4 * n)
        for (int64_t i = 0; i < n; i++)
            sum[i] += (x[i] + x[n + i]) + (x[2 * n + i] + x[3 * n + i]);
    for (; rows > 0; rows--, x += n)
        for (int64_t i = 0; i < n; i++)
            sum[i] += x[i];
}

static inline __attribute__((always_inline)) real square(real x)
{
    return x * x;
}

static inline __attribute__((always_inline)) void add_squares(int64_t n, int64_t rows,
                                                              const real *restrict x,
                                                              const real *restrict mean,
                                                              real *restrict sum)
{
    for (; rows >= 4; rows -= 4, x += 4 * n)
        for (int64_t i = 0; i < n; i++)
            sum[i] += (square(x[i] - mean[i]) + square(x[n + i] - mean[i])) +
                      (square(x[2 * n + i] - mean[i]) + square(x[3 * n + i] - mean[i]));
    for (; rows > 0; rows--, x += n)
        for (int64_t i = 0; i < n; i++)
            sum[i] += square(x[i] - mean[i]);
}

/* The means of each block, and the sums of squares around them. */
CPU_CLONES static void block_statistics(const void *arg, int64_t from, int64_t to)
{
    const struct norm *v = arg;
    int64_t n = v->channels;
    for (int64_t b = from; b < to; b++) {
        real *restrict mean = v->sums + 2 * b * n, *restrict squares = mean + n;
        const real *x = in_real(v->c, 0);
        int64_t first = b * BLOCK, end = block_end(v, b);
        real share = 1 / (real)(end - first);
        memset(mean, 0, (size_t)(2 * n) * sizeof *mean);
        add_rows(n, end - first, x + first * n, mean);
        for (int64_t i = 0; i < n; i++)
            mean[i] *= share;
        add_squares(n, end - first, x + first * n, mean, squares);
    }
}

/* total: the sums of squares around the means of all, and those means. */
static void join_statistics(struct norm *v)
{
    int64_t n = v->channels;
    double *squares = v->total, *mean = squares + n, seen = 0;
    memset(v->total, 0, 2 * (size_t)n * sizeof *v->total);
    for (int64_t b = 0; b < v->blocks; b++) {
        const real *m = v->sums + 2 * b * n, *s = m + n;
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
apply_pixel(int64_t n, bool relu, const real *restrict scale, const real *restrict shift,
            const real *restrict x, const real *restrict more, real *restrict y)
{
    for (int64_t i = 0; i < n; i++) {
        real value = scale[i] * x[i] + shift[i] + (more ? more[i] : 0);
        y[i] = relu && value < 0 ? 0 : value;
    }
}

CPU_CLONES static void apply_blocks(const void *arg, int64_t from, int64_t to)
{
    const struct norm *v = arg;
    int64_t n = v->channels;
    const real *x = in_real(v->c, 0), *more = in_real(v->c, 5);
    real *y = out_real(v->c, 0);
    for (int64_t at = from * BLOCK * n; at < block_end(v, to - 1) * n; at += n)
        if (more)
            apply_pixel(n, v->c->a.relu, v->scale, v->shift, x + at, more + at, y + at);
        else
            apply_pixel(n, v->c->a.relu, v->scale, v->shift, x + at, NULL, y + at);
}

/* y = scale * x + shift of a channel. */
static void set_channel(struct norm *v, int64_t i, real w, real b, real mean, real invstd)
{
    double scale = (double)w * invstd;
    v->scale[i] = (real)scale;
    v->shift[i] = (real)(b - mean * scale);
}

static void keep_channel(struct norm *v, int64_t i, real mean, real invstd)
{
    out_real(v->c, 1)[i] = mean;
    out_real(v->c, 2)[i] = invstd;
    set_channel(v, i, in_real(v->c, 1)[i], in_real(v->c, 2)[i], mean, invstd);
}

static void update_running(real *running, double value, double momentum)
{
    *running = (real)((1 - momentum) * *running + momentum * value);
}

int CPU(batch_norm_train)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(norm_finish) struct norm v;
    int rc = norm_init(&v, c, c->in[0], err);
    if (rc < 0)
        return rc;
    double n = (double)v.pixels;
    run_blocks(s, &v, block_statistics);
    join_statistics(&v);
    for (int64_t i = 0; i < v.channels; i++) {
        double mean = v.total[v.channels + i], var = v.total[i] / n;
        keep_channel(&v, i, (real)mean, (real)(1 / sqrt(var + c->a.eps)));
        update_running(out_real(c, 3) + i, mean, c->a.momentum);
        update_running(out_real(c, 4) + i, n > 1 ? var * n / (n - 1) : var, c->a.momentum);
    }
    run_blocks(s, &v, apply_blocks);
    return 0;
}

int CPU(batch_norm_eval)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(norm_finish) struct norm v;
    int rc = norm_init(&v, c, c->in[0], err);
    if (rc < 0)
        return rc;
    for (int64_t i = 0; i < v.channels; i++) {
        keep_channel(&v, i, in_real(c, 3)[i], (real)(1 / sqrt(in_real(c, 4)[i] + c->a.eps)));
    }
    run_blocks(s, &v, apply_blocks);
    return 0;
}

/* What the gradients of some pixels are made from. dy counts where y > 0, or where
 * scale * x + shift > 0; everywhere where both are NULL. */
struct gate {
    const real *dy, *x, *y, *scale, *shift;
};

static struct gate gate_of(const struct norm *v)
{
    struct gate g = {.dy = in_real(v->c, 0), .x = in_real(v->c, 1)};
    bool again = v->c->a.relu && in_real(v->c, 6);
    g.y = v->c->a.relu && !again ? in_real(v->c, 2) : NULL;
    g.scale = again ? v->scale : NULL;
    g.shift = again ? v->shift : NULL;
    return g;
}

/* dy of channel i, the k-th value from pixel `at` on, if it counts. */
static inline __attribute__((always_inline)) real gated_dy(const struct gate *g, int64_t at,
                                                           int64_t i, int64_t k)
{
    if (g->y)
        return g->y[at + k] <= 0 ? 0 : g->dy[at + k];
    if (g->scale)
        return g->scale[i] * g->x[at + k] + g->shift[i] <= 0 ? 0 : g->dy[at + k];
    return g->dy[at + k];
}

/* Some pixels at once: their sums, and what counts of dy kept in dr where that is wanted. */
static inline __attribute__((always_inline)) void sum_pixels(int64_t n, int pixels, struct gate g,
                                                             int64_t at, const real *restrict mean,
                                                             real *dr, real *restrict sum)
{
    CPU_IN_PLACE
    for (int64_t i = 0; i < n; i++) {
        real s = 0, t = 0;
        for (int p = 0; p < pixels; p++) {
            real v = gated_dy(&g, at, i, p * n + i);
            s += v;
            t += v * (g.x[at + p * n + i] - mean[i]);
            if (dr)
                dr[at + p * n + i] = v;
        }
        sum[i] += s;
        sum[n + i] += t;
    }
}

/* The pixels of one block: n values each, from `at` to `end`. */
static inline __attribute__((always_inline)) void sum_block(const struct norm *v, struct gate g,
                                                            real *dr, int64_t b)
{
    int64_t n = v->channels, at = b * BLOCK * n, end = block_end(v, b) * n;
    real *sum = v->sums + 2 * b * n;
    memset(sum, 0, (size_t)(2 * n) * sizeof *sum);
    for (; at + 4 * n <= end; at += 4 * n)
        sum_pixels(n, 4, g, at, v->mean, dr, sum);
    for (; at < end; at += n)
        sum_pixels(n, 1, g, at, v->mean, dr, sum);
}

/* Sums of g and of g * (x - mean), in a loop of its own for each kind of gate. */
CPU_CLONES static void sum_grads(const void *arg, int64_t from, int64_t to)
{
    const struct norm *v = arg;
    struct gate g = gate_of(v), by_x = g, by_y = g, open = g;
    real *dr = out_real(v->c, 3);
    by_x.y = by_y.scale = open.y = open.scale = NULL;
    for (int64_t b = from; b < to; b++)
        if (g.scale)
            sum_block(v, by_x, NULL, b);
        else if (g.y && dr)
            sum_block(v, by_y, dr, b);
        else if (g.y)
            sum_block(v, by_y, NULL, b);
        else if (dr)
            sum_block(v, open, dr, b);
        else
            sum_block(v, open, NULL, b);
}

/* One pixel of dx = scale * g + slope * x + back. */
static inline __attribute__((always_inline)) void grad_pixel(const struct norm *v, struct gate g,
                                                             int64_t at, real *dx)
{
    const real *restrict scale = v->scale, *restrict slope = v->slope, *restrict back = v->back;
    int64_t n = v->channels;
    CPU_IN_PLACE
    for (int64_t i = 0; i < n; i++)
        dx[at + i] = scale[i] * gated_dy(&g, at, i, i) + slope[i] * g.x[at + i] + back[i];
}

CPU_CLONES static void apply_grads(const void *arg, int64_t from, int64_t to)
{
    const struct norm *v = arg;
    struct gate g = gate_of(v), by_x = g, by_y = g, open = g;
    real *dr = out_real(v->c, 3), *dx = out_real(v->c, 0);
    int64_t n = v->channels;
    by_x.y = by_y.scale = open.y = open.scale = NULL;
    if (dr)
        open.dy = dr;
    for (int64_t at = from * BLOCK * n; at < block_end(v, to - 1) * n; at += n)
        if (g.scale)
            grad_pixel(v, by_x, at, dx);
        else if (g.y && !dr)
            grad_pixel(v, by_y, at, dx);
        else
            grad_pixel(v, open, at, dx);
}

/* dx = w invstd (g - sum / n - xhat * dw / n), written as scale * g + slope * x + back. */
static void set_grads(struct norm *v, int64_t i)
{
    const struct det_call *c = v->c;
    double n = (double)v->pixels, mean = in_real(c, 4)[i], invstd = in_real(c, 5)[i];
    double sum = v->total[i], dot = v->total[v->channels + i] * invstd;
    double scale = in_real(c, 3)[i] * invstd;
    double slope = c->a.train ? -scale * dot * invstd / n : 0;
    v->slope[i] = (real)slope;
    v->back[i] = (real)(c->a.train ? -scale * sum / n - slope * mean : 0);
    out_real(c, 1)[i] = (real)dot;
    out_real(c, 2)[i] = (real)sum;
}

int CPU(batch_norm_bwd)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    det_cleanup(norm_finish) struct norm v;
    int rc = norm_init(&v, c, c->in[1], err);
    if (rc < 0)
        return rc;
    v.mean = in_real(c, 4);
    for (int64_t i = 0; i < v.channels; i++)
        set_channel(&v, i, in_real(c, 3)[i], in_real(c, 6) ? in_real(c, 6)[i] : 0, v.mean[i],
                    in_real(c, 5)[i]);
    run_blocks(s, &v, sum_grads);
    join_sums(&v);
    for (int64_t i = 0; i < v.channels; i++)
        set_grads(&v, i);
    if (c->out[0])
        run_blocks(s, &v, apply_grads);
    return 0;
}
