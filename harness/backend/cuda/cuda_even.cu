/*
 * Products of f16 and bf16 whose rows begin anywhere. cuBLAS's fast kernels read and write 16 bytes
 * at a time: a vocabulary of 50,257 makes it take others, 4 times as slow. So large products are
 * made on copies whose rows are a multiple of 16 bytes apart, a piece of C's rows at a time.
 */
#include "cuda_kernel.cuh"

#ifndef CUDA_EVEN_MIN
#define CUDA_EVEN_MIN   (1LL << 30) /* multiplications that are worth the copies */
#define CUDA_EVEN_BYTES (1LL << 28) /* of all copies */
#endif
#define STEP 8 /* elements of 16 bytes */

typedef uint16_t element;

static int64_t even(int64_t n)
{
    return (n + STEP - 1) / STEP * STEP;
}

/* Rows of `wide` elements, ld apart. */
struct even_rows {
    element *p;
    int64_t n, wide, ld;

    bool is_even() const
    {
        return ld % STEP == 0 && (uintptr_t)p % 16 == 0;
    }
    int64_t bytes() const
    {
        return n * even(wide) * (int64_t)sizeof(element);
    }
};

static int move(struct det_stream *s, const struct det_call *c, struct even_rows from,
                struct even_rows to, struct det_err *err)
{
    return cuda_blocks(
        s, c, from.n,
        DEVICE(int64_t row) {
            for (int64_t j = threadIdx.x; j < from.wide; j += blockDim.x)
                to.p[row * to.ld + j] = from.p[row * from.ld + j];
        },
        err);
}

static struct even_rows rows_of(const void *p, bool turned, int64_t n, int64_t wide, int64_t ld)
{
    return {(element *)p, turned ? wide : n, turned ? n : wide, ld};
}

/* A product's operands and what of them is copied. */
struct product {
    const struct cuda_gemm *g;
    struct even_rows a, b, c;
    int64_t piece; /* rows of C */
};

/* What a row of C needs, of A and C. */
static int64_t row_bytes(const struct product *p)
{
    int64_t a = p->g->ta ? p->g->k : even(p->g->k), c = even(p->g->n);
    return ((p->a.is_even() ? 0 : a) + (p->c.is_even() ? 0 : c)) * (int64_t)sizeof(element);
}

static bool plan(const struct cuda_gemm *g, struct product *p)
{
    bool half = g->dtype == DET_BF16 || g->dtype == DET_F16;
    if (!half || g->count > 1 || g->beta != 0 || g->m * g->n * g->k < CUDA_EVEN_MIN)
        return false;
    *p = {g, rows_of(g->a, g->ta, g->m, g->k, g->lda), rows_of(g->b, g->tb, g->k, g->n, g->ldb),
          rows_of(g->c, false, g->m, g->n, g->ldc), 0};
    int64_t left = CUDA_EVEN_BYTES - (p->b.is_even() ? 0 : p->b.bytes()), each = row_bytes(p);
    p->piece = each > 0 && left > 0 ? left / each / STEP * STEP : left > 0 ? g->m : 0;
    p->piece = p->piece < g->m ? p->piece : even(g->m);
    return p->piece > 0 && !(p->a.is_even() && p->b.is_even() && p->c.is_even());
}

/* The rows, copied to *at where they are not even, which moves on. */
static int evened(struct det_stream *s, const struct det_call *c, struct even_rows *r, element **at,
                  struct det_err *err)
{
    struct even_rows from = *r;
    if (r->is_even())
        return 0;
    r->p = *at, r->ld = even(r->wide);
    *at += r->n * r->ld;
    return move(s, c, from, *r, err);
}

/* Rows i to i + n of C, with copies from `at` on. */
static int piece(struct det_stream *s, const struct det_call *c, const struct product *p, int64_t i,
                 int64_t n, element *at, struct det_err *err)
{
    struct cuda_gemm g = *p->g;
    struct even_rows a = p->a, y = p->c, to = p->c;
    a.p += g.ta ? i : i * a.ld;
    (g.ta ? a.wide : a.n) = n;
    y.p += i * y.ld;
    y.n = to.n = n;
    to.p = y.p;
    int rc = evened(s, c, &a, &at, err);
    if (!p->c.is_even())
        to.p = at, to.ld = even(to.wide);
    g.m = n, g.a = a.p, g.lda = a.ld, g.b = p->b.p, g.ldb = p->b.ld, g.c = to.p, g.ldc = to.ld;
    if (rc == 0)
        rc = cuda_gemm(s, &g, err);
    return rc < 0 || p->c.is_even() ? rc : move(s, c, to, y, err);
}

int cuda_gemm_even(struct det_stream *s, const struct det_call *c, const struct cuda_gemm *g,
                   struct det_err *err)
{
    struct product p;
    void *work = NULL;
    if (!plan(g, &p))
        return cuda_gemm(s, g, err);
    int64_t bytes = p.piece * row_bytes(&p) + (p.b.is_even() ? 0 : p.b.bytes());
    int rc = cuda_workspace(s->device, (size_t)bytes, &work, err);
    element *at = (element *)work;
    if (rc == 0)
        rc = evened(s, c, &p.b, &at, err);
    for (int64_t i = 0; rc == 0 && i < g->m; i += p.piece)
        rc = piece(s, c, &p, i, g->m - i < p.piece ? g->m - i : p.piece, at, err);
    return rc;
}
