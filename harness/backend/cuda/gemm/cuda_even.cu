/*
 * Products of f16 and bf16 whose rows begin anywhere. cuBLAS's fast kernels read and write 16 bytes
 * at a time: a vocabulary of 50,257 makes it take others, 7 times as slow. So large products are
 * made on copies of multiples of 16 bytes, zeros behind what is there, a piece of C's rows at a
 * time. A C of f32 is written where it lies.
 *
 * Where rows lie well and only are no multiple long, nothing is copied: what is past the last
 * multiple is a small product of its own. So lies what cuda_row_step() asks for.
 */
#include "cuda_row.cuh"

#ifndef CUDA_EVEN_MIN
#define CUDA_EVEN_MIN   (1LL << 30) /* multiplications that are worth the copies */
#define CUDA_EVEN_BYTES (1LL << 28) /* of all copies */
#endif
#define STEP 8   /* elements of 16 bytes */
#define TILE 256 /* rows that cuBLAS's kernels compute together, at most */

typedef uint16_t element;

static int64_t even(int64_t n)
{
    return (n + STEP - 1) / STEP * STEP;
}

/* Rows of `wide` elements, ld apart. */
struct even_rows {
    element *p;
    int64_t n, wide, ld;
};

/* The STEP elements at p, which lies `past` bytes behind a multiple of 16. The second load is what
 * another thread's first is. */
__device__ static cuda_quad eight(const element *p, int past)
{
    const cuda_quad *at = (const cuda_quad *)(p - past / (int)sizeof(element));
    cuda_quad a = at[0];
    if (past == 0)
        return a;
    cuda_quad b = at[1];
    uint32_t w[8] = {a.w[0], a.w[1], a.w[2], a.w[3], b.w[0], b.w[1], b.w[2], b.w[3]};
    CUDA_UNROLL
    for (int i = 0; i < 6; i++)
        w[i] = past & 8 ? w[i + 2] : w[i];
    CUDA_UNROLL
    for (int i = 0; i < 5; i++)
        w[i] = past & 4 ? w[i + 1] : w[i];
    CUDA_UNROLL
    for (int i = 0; i < 4; i++)
        a.w[i] = past & 2 ? w[i] >> 16 | w[i + 1] << 16 : w[i];
    return a;
}

/* A row of `from`, of which `have` elements count, to one of `to`, by packs as that one lies. */
template <typename TEAM>
__device__ static void move_row(const element *x, int64_t have,
                                const cuda_span<cuda_packs<cuda_bf16>> &to, TEAM team)
{
    element *y = (element *)(to.x.p + to.at);
    int past = (int)((uintptr_t)(x + to.head) % sizeof(cuda_quad));
    int64_t q = team.first(), step = team.step();
    int64_t whole = have > to.head ? (have - to.head) / STEP : 0;
    for (; q + step < whole; q += 2 * step) {
        cuda_quad a = eight(x + to.pack(q), past), b = eight(x + to.pack(q + step), past);
        *(cuda_quad *)(y + to.pack(q)) = a;
        *(cuda_quad *)(y + to.pack(q + step)) = b;
    }
    if (q < whole)
        *(cuda_quad *)(y + to.pack(q)) = eight(x + to.pack(q), past);
    for (q = to.head + whole * STEP + team.first(); q < to.pack(to.packs); q += step)
        y[q] = q < have ? x[q] : (element)0;
    for (int64_t i = team.first(), j; i < to.singles; i += step) {
        j = to.single(i);
        y[j] = j < have ? x[j] : (element)0;
    }
}

/* What `from` has, zeros where it ends before `to`. */
static int move(struct det_stream *s, const struct det_call *c, struct even_rows from,
                struct even_rows to, struct det_err *err)
{
    typedef cuda_packs<cuda_bf16> X;
    int64_t wide = from.wide < to.wide ? from.wide : to.wide;
    return cuda_teams(
        s, c, to.n, to.wide, cuda_row_most<X>(),
        [=] __device__(int64_t row, auto team) {
            cuda_span<X> y({(cuda_bf16 *)to.p}, row * to.ld, to.wide);
            if (!team.more)
                move_row(from.p + row * from.ld, row < from.n ? wide : 0, y, team);
        },
        err);
}

/* A product's operands, and which are copied; of A and C only `piece` rows of C's at a time. */
struct product {
    const struct cuda_gemm *g;
    struct even_rows a, b, c;
    bool copies_a, copies_b, copies_c;
    int64_t piece;
};

static bool lies_well(const struct even_rows *r)
{
    return r->ld % STEP == 0 && (uintptr_t)r->p % 16 == 0;
}

static struct even_rows rows_of(const void *p, bool turned, int64_t n, int64_t wide, int64_t ld)
{
    return {(element *)p, turned ? wide : n, turned ? n : wide, ld};
}

/* An extent along which some operand's elements lie is to be a multiple, in all that have it. */
static struct product product_of(const struct cuda_gemm *g)
{
    struct product p = {g, rows_of(g->a, g->ta, g->m, g->k, g->lda),
                        rows_of(g->b, g->tb, g->k, g->n, g->ldb),
                        rows_of(g->c, false, g->m, g->n, g->ldc)};
    bool odd_m = g->ta && g->m % STEP != 0, odd_n = g->n % STEP != 0, odd_k = g->k % STEP != 0;
    p.copies_a = !lies_well(&p.a) || odd_m || odd_k;
    p.copies_b = !lies_well(&p.b) || odd_n || odd_k;
    p.copies_c = !g->wide && (!lies_well(&p.c) || odd_m || odd_n);
    return p;
}

static int64_t bytes_of_b(const struct product *p)
{
    return p->copies_b ? even(p->b.n) * even(p->b.wide) * (int64_t)sizeof(element) : 0;
}

/* What a row of C needs, of A and C. */
static int64_t bytes_of_row(const struct product *p)
{
    int64_t a = p->copies_a ? even(p->g->k) : 0, c = p->copies_c ? even(p->g->n) : 0;
    return (a + c) * (int64_t)sizeof(element);
}

/* Rows of a piece where there are to be no more than `most`: pieces alike, of whole tiles. */
static int64_t evenly(int64_t all, int64_t most)
{
    int64_t pieces = most > 0 ? (all + most - 1) / most : 1, each = (all + pieces - 1) / pieces;
    each = (each + TILE - 1) / TILE * TILE;
    return each < most ? each : most;
}

static bool plan(const struct cuda_gemm *g, struct product *p)
{
    *p = product_of(g);
    int64_t left = CUDA_EVEN_BYTES - bytes_of_b(p), each = bytes_of_row(p), all = even(g->m);
    p->piece = left <= 0 ? 0 : each > 0 ? left / each / STEP * STEP : all;
    p->piece = p->piece >= all ? all : g->ta ? p->piece : evenly(all, p->piece);
    return p->piece > 0 && (p->copies_a || p->copies_b || p->copies_c);
}

/* Copies the rows to *at, which moves on. */
static int copied(struct det_stream *s, const struct det_call *c, struct even_rows *r, element **at,
                  struct det_err *err)
{
    struct even_rows from = *r;
    *r = {*at, even(r->n), even(r->wide), even(r->wide)};
    *at += r->n * r->ld;
    return move(s, c, from, *r, err);
}

/* Rows i to i + n of C, with copies from `at` on. */
static int piece(struct det_stream *s, const struct det_call *c, const struct product *p, int64_t i,
                 int64_t n, element *at, struct det_err *err)
{
    struct cuda_gemm g = *p->g;
    struct even_rows a = p->a, y = p->c;
    a.p += g.ta ? i : i * a.ld;
    (g.ta ? a.wide : a.n) = n;
    y.p += i * y.ld * (g.wide ? 2 : 1); /* f32 has two of our elements */
    y.n = n;
    int rc = p->copies_a ? copied(s, c, &a, &at, err) : 0;
    struct even_rows to = p->copies_c ? (struct even_rows){at, n, g.n, even(g.n)} : y;
    g.m = g.ta && p->copies_a && p->copies_c ? even(n) : n;
    g.n = p->copies_b && p->copies_c ? even(g.n) : g.n;
    g.k = p->copies_a ? even(g.k) : g.k;
    g.a = a.p, g.lda = a.ld, g.b = p->b.p, g.ldb = p->b.ld, g.c = to.p, g.ldc = to.ld;
    if (rc == 0)
        rc = cuda_gemm(s, &g, err);
    return rc < 0 || !p->copies_c ? rc : move(s, c, to, y, err);
}

/* An extent along which an operand's elements lie. */
enum extent { NONE, M, N, K };

/* That which is no multiple; NONE where it is not one alone. */
static enum extent odd_extent(const struct cuda_gemm *g)
{
    bool m = g->ta && g->m % STEP != 0, n = (!g->tb || !g->wide) && g->n % STEP != 0;
    bool k = (!g->ta || g->tb) && g->k % STEP != 0;
    return m + n + k != 1 ? NONE : m ? M : n ? N : K;
}

static int64_t *extent_of(struct cuda_gemm *g, enum extent e)
{
    return e == M ? &g->m : e == N ? &g->n : &g->k;
}

/* g from `at` on along an extent. */
static struct cuda_gemm past(struct cuda_gemm g, enum extent e, int64_t at)
{
    const element *a = (const element *)g.a, *b = (const element *)g.b;
    element *c = (element *)g.c;
    int64_t of_c = g.wide ? 2 : 1; /* f32 has two of our elements */
    if (e != N)
        a += (e == M) == g.ta ? at : at * g.lda;
    if (e != M)
        b += (e == K) == g.tb ? at : at * g.ldb;
    if (e != K)
        c += (e == N ? at : at * g.ldc) * of_c;
    g.a = a, g.b = b, g.c = c;
    g.beta = e == K ? 1 : g.beta;
    *extent_of(&g, e) -= at;
    return g;
}

/* Whether g can be made of two, and where. Sums that are cut must be kept in f32. */
static bool splits(const struct cuda_gemm *g, enum extent *ret, int64_t *ret_at)
{
    struct product p = product_of(g);
    struct cuda_gemm first = *g;
    enum extent e = odd_extent(g);
    if (e == NONE || (e == K && !g->wide) || !lies_well(&p.a) || !lies_well(&p.b) ||
        (!g->wide && !lies_well(&p.c)))
        return false;
    *ret = e;
    *ret_at = *extent_of(&first, e) / STEP * STEP;
    return *ret_at > 0;
}

static int split(struct det_stream *s, const struct cuda_gemm *g, enum extent e, int64_t at,
                 struct det_err *err)
{
    struct cuda_gemm first = *g, rest = past(*g, e, at);
    *extent_of(&first, e) = at;
    int rc = cuda_gemm(s, &first, err);
    return rc < 0 ? rc : cuda_gemm(s, &rest, err);
}

static bool worth_it(const struct cuda_gemm *g)
{
    bool half = g->dtype == DET_BF16 || g->dtype == DET_F16;
    return half && g->count <= 1 && g->beta == 0 && g->m * g->n * g->k >= CUDA_EVEN_MIN;
}

int64_t cuda_row_step(const struct det_call *c)
{
    const struct det_tensor *x = c->in[0], *w = c->in[1];
    struct cuda_gemm g = {.dtype = x->dtype, .m = x->dims[0], .n = w->dims[0], .k = x->dims[1]};
    bool plain = !c->in[2] && !c->a.relu;
    return plain && w->dtype == x->dtype && g.k % STEP == 0 && worth_it(&g) ? even(g.n) : g.n;
}

int cuda_gemm_even(struct det_stream *s, const struct det_call *c, const struct cuda_gemm *g,
                   struct det_err *err)
{
    struct product p;
    void *work = NULL;
    enum extent odd;
    int64_t first;
    if (!worth_it(g))
        return cuda_gemm(s, g, err);
    if (splits(g, &odd, &first))
        return split(s, g, odd, first, err);
    if (!plan(g, &p))
        return cuda_gemm(s, g, err);
    int64_t bytes = even(p.piece) * bytes_of_row(&p) + bytes_of_b(&p);
    int rc = cuda_workspace(s->device, (size_t)bytes, &work, err);
    element *at = (element *)work;
    if (rc == 0 && p.copies_b)
        rc = copied(s, c, &p.b, &at, err);
    for (int64_t i = 0, n; rc == 0 && i < g->m; i += n) {
        n = g->m - i < p.piece ? g->m - i : p.piece;
        rc = piece(s, c, &p, i, n, at, err);
    }
    return rc;
}
