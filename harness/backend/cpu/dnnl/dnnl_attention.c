/*
 * Attention in blocks of rows (Dao et al. 2022 keep less still): a block's scores against all its
 * keys are one product, made again for the gradient from the kept row sums, so that nothing of
 * time x time elements is ever stored. The threads divide the heads; each sums its own gradients in
 * the order of the blocks.
 */
#include <stdatomic.h>
#include <string.h>

#include "dnnl_prim.h"
#include "mem.h"
#include "ref_attention.h"

#define ROWS 64

/* One head, one block of its rows at a time. */
struct block {
    const struct attention *a;
    int64_t b, h, first, rows, keys; /* keys: those that the last row sees */
    const struct det_tensor *mask;
    real *weights, *grads; /* [ROWS, S] */
    real *kept, *keep;     /* [ROWS, S], [S]; NULL without dropout */
};

struct job {
    struct attention a;
    void (*head)(struct block *k);
    const struct det_tensor *mask;
    atomic_int nomem; /* a thread found no memory */
};

/* c [m, n] = alpha a b^T. */
static void by_transposed(int64_t m, int64_t n, int64_t k, real alpha, struct head a, struct head b,
                          real *c)
{
    prim_gemm('N', 'T', m, n, k, alpha, a.p, a.step, b.p, b.step, 0, c, n);
}

static struct head rows_from(struct head h, int64_t first)
{
    return (struct head){h.p + first * h.step, h.step};
}

/* Of all heads. */
static int64_t rows_of(const struct attention *a)
{
    return a->batch * a->heads * a->time;
}

static int64_t row_index(const struct block *k, int64_t i)
{
    return (k->b * k->a->heads + k->h) * k->a->time + k->first + i;
}

/* What is hidden from row i becomes -inf; the mask is added. */
static void hide_keys(const struct block *k, int64_t i)
{
    int64_t seen = k->a->c->a.causal ? k->first + i + 1 : k->keys;
    const real *m = mask_row(k->a, k->mask, k->b, k->h, k->first + i);
    real *row = k->weights + i * k->keys;
    for (int64_t s = 0; m && s < k->keys; s++)
        row[s] += m[s];
    for (int64_t s = seen; s < k->keys; s++)
        row[s] = -INFINITY;
}

/* max and log_sum are taken off one by one: beside a mask's large numbers the latter would be lost.
 */
CPU_CLONES static void exp_row(real *row, int64_t n, real max, real log_sum)
{
    for (int64_t s = 0; s < n; s++)
        row[s] = vm_exp((row[s] - max) - log_sum);
}

CPU_CLONES static void multiply_row(real *row, const real *by, int64_t n)
{
    for (int64_t s = 0; s < n; s++)
        row[s] *= by[s];
}

/* dS = P (dP - sum(P dP)), into P's place. */
CPU_CLONES static void through_softmax(real *p, const real *dp, int64_t n)
{
    real sum[16] = {0}, delta = 0;
    int64_t s = 0;
    for (; s + 16 <= n; s += 16)
        for (int l = 0; l < 16; l++)
            sum[l] += p[s + l] * dp[s + l];
    for (int l = 0; s < n; s++, l++)
        sum[l] += p[s] * dp[s];
    for (int l = 0; l < 16; l++)
        delta += sum[l];
    for (s = 0; s < n; s++)
        p[s] *= dp[s] - delta;
}

static void score_block(const struct block *k, struct head q, struct head key)
{
    by_transposed(k->rows, k->keys, k->a->width, (real)k->a->c->a.scale, rows_from(q, k->first),
                  key, k->weights);
    for (int64_t i = 0; i < k->rows; i++)
        hide_keys(k, i);
}

static void forward_block(const struct block *k, struct head q, struct head key, struct head v,
                          struct head y)
{
    const struct det_call *c = k->a->c;
    y = rows_from(y, k->first);
    score_block(k, q, key);
    for (int64_t i = 0; i < k->rows; i++) {
        real *row = k->weights + i * k->keys, *max = out_real(c, 1) + row_index(k, i);
        real log_sum = max[rows_of(k->a)] = CPU(row_log_sum)(row, k->keys, max);
        exp_row(row, k->keys, *max, log_sum);
        if (k->keep) {
            REF(attention_keep)(k->a, row_index(k, i), k->keep);
            multiply_row(row, k->keep, k->keys);
        }
    }
    prim_gemm('N', 'N', k->rows, k->a->width, k->keys, 1, k->weights, k->keys, v.p, v.step, 0, y.p,
              y.step);
}

/* Moves to the next block; false after the last. */
static bool next_block(struct block *k)
{
    k->first += k->rows;
    int64_t left = k->a->time - k->first, seen = k->first + (left < ROWS ? left : ROWS);
    k->rows = left < ROWS ? left : ROWS;
    k->keys = k->a->c->a.causal && seen < k->a->keys ? seen : k->a->keys;
    return left > 0;
}

static void forward_head(struct block *k)
{
    const struct attention *a = k->a;
    const struct det_call *c = a->c;
    struct head q = head_in(a, c->in[0], 0, k->b, k->h), y = head_out(a, c->out[0], k->b, k->h);
    struct head key = head_in(a, c->in[a->packed ? 0 : 1], 1, k->b, k->h);
    struct head v = head_in(a, c->in[a->packed ? 0 : 2], 2, k->b, k->h);
    while (next_block(k))
        forward_block(k, q, key, v, y);
}

/* The tensors of a head on the way back; d*: their gradients. */
struct heads {
    struct head q, k, v, dq, dk, dv, dy;
};

/* The weights of the block again and their gradients, both with what dropout kept. */
static void weights_again(const struct block *k, const struct heads *t)
{
    score_block(k, t->q, t->k);
    by_transposed(k->rows, k->keys, k->a->width, 1, rows_from(t->dy, k->first), t->v, k->grads);
    for (int64_t i = 0; i < k->rows; i++) {
        real *row = k->weights + i * k->keys;
        const real *max = in_real(k->a->c, 5) + row_index(k, i);
        exp_row(row, k->keys, *max, max[rows_of(k->a)]);
        if (!k->keep)
            continue;
        real *kept = k->kept + i * k->keys;
        REF(attention_keep)(k->a, row_index(k, i), k->keep);
        memcpy(kept, row, (size_t)k->keys * sizeof *kept);
        multiply_row(kept, k->keep, k->keys);
        multiply_row(k->grads + i * k->keys, k->keep, k->keys);
    }
}

static void backward_block(const struct block *k, const struct heads *t)
{
    int64_t n = k->keys, d = k->a->width;
    real beta = k->first > 0 ? 1 : 0, scale = (real)k->a->c->a.scale;
    struct head q = rows_from(t->q, k->first), dq = rows_from(t->dq, k->first);
    struct head dy = rows_from(t->dy, k->first);
    weights_again(k, t);
    prim_gemm('T', 'N', n, d, k->rows, 1, k->kept ? k->kept : k->weights, n, dy.p, dy.step, beta,
              t->dv.p, t->dv.step);
    for (int64_t i = 0; i < k->rows; i++)
        through_softmax(k->weights + i * n, k->grads + i * n, n);
    prim_gemm('N', 'N', k->rows, d, n, scale, k->weights, n, t->k.p, t->k.step, 0, dq.p, dq.step);
    prim_gemm('T', 'N', n, d, k->rows, scale, k->weights, n, q.p, q.step, beta, t->dk.p,
              t->dk.step);
}

static void clear_head(struct head h, int64_t rows, int64_t width)
{
    for (int64_t i = 0; i < rows; i++)
        memset(h.p + i * h.step, 0, (size_t)width * sizeof(real));
}

static void backward_head(struct block *k)
{
    const struct attention *a = k->a;
    const struct det_call *c = a->c;
    int p = a->packed ? 1 : 0;
    const struct heads t = {
        .q = head_in(a, c->in[1], 0, k->b, k->h),
        .k = head_in(a, c->in[2 - p], 1, k->b, k->h),
        .v = head_in(a, c->in[3 - 2 * p], 2, k->b, k->h),
        .dq = head_in(a, c->out[0], 0, k->b, k->h),
        .dk = head_in(a, c->out[1 - p], 1, k->b, k->h),
        .dv = head_in(a, c->out[2 - 2 * p], 2, k->b, k->h),
        .dy = head_out(a, c->in[0], k->b, k->h),
    };
    /* A block adds to the keys that it sees; later ones see more. */
    clear_head(t.dk, a->keys, a->width);
    clear_head(t.dv, a->keys, a->width);
    while (next_block(k))
        backward_block(k, &t);
}

static void heads_range(const void *arg, int64_t from, int64_t to)
{
    struct job *j = (struct job *)arg;
    size_t n = (size_t)(ROWS * j->a.keys), keep = (size_t)j->a.keys;
    det_cleanup(freep) real *buffer = det_try_alloc((n * 3 + keep) * sizeof *buffer);
    if (!buffer)
        atomic_store(&j->nomem, 1);
    for (int64_t i = from; buffer && i < to; i++) {
        struct block k = {.a = &j->a, .b = i / j->a.heads, .h = i % j->a.heads, .mask = j->mask};
        k.weights = buffer;
        k.grads = buffer + n;
        k.kept = j->a.c->a.p > 0 ? buffer + 2 * n : NULL;
        k.keep = j->a.c->a.p > 0 ? buffer + 3 * n : NULL;
        j->head(&k);
    }
}

static int run_heads(struct det_stream *s, struct job *j, struct det_err *err)
{
    if (j->a.time == 0 || j->a.keys == 0)
        return 0;
    cpu_parallel(cpu_device(s)->threads, j->a.batch * j->a.heads, 1, heads_range, j);
    return j->nomem ? det_fail(err, DET_ENOMEM, "no memory for a block of attention") : 0;
}

int CPU(attention)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct job j = {.a = attention_of(c, 0), .head = forward_head, .mask = c->in[3]};
    return run_heads(s, &j, err);
}

int CPU(attention_bwd)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct job j = {.a = attention_of(c, 1), .head = backward_head, .mask = c->in[4]};
    return run_heads(s, &j, err);
}
