/* Products by cuBLAS: f32 without TF32 (losses would differ by 1e-3) unless it is allowed, f64 in
 * f64, bf16 and f16 in f32. */
#include "cuda_lt.h"
#include "cuda_walk.cuh"

#include <limits.h>

static cudaDataType type_of(enum det_dtype dtype)
{
    switch (dtype) {
    case DET_F64: return CUDA_R_64F;
    case DET_BF16: return CUDA_R_16BF;
    case DET_F16: return CUDA_R_16F;
    default: return CUDA_R_32F;
    }
}

static cublasComputeType_t compute_of(enum det_dtype dtype)
{
    switch (dtype) {
    case DET_F64: return CUBLAS_COMPUTE_64F;
    case DET_F32:
        return cuda_allows_tf32() ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F_PEDANTIC;
    default: return CUBLAS_COMPUTE_32F;
    }
}

/* A factor as cuBLAS wants it: of the type that is computed in. */
union factor {
    float f32;
    double f64;
};

static union factor factor_of(double v, enum det_dtype dtype)
{
    union factor r = {};
    if (dtype == DET_F64)
        r.f64 = v;
    else
        r.f32 = (float)v;
    return r;
}

static bool fits(const struct cuda_gemm *g)
{
    return g->m <= INT_MAX && g->n <= INT_MAX && g->k <= INT_MAX && g->lda <= INT_MAX &&
           g->ldb <= INT_MAX && g->ldc <= INT_MAX && g->count <= INT_MAX;
}

/* Row-major C = A B is column-major C^T = B^T A^T: the operands change places. */
int cuda_gemm(struct det_stream *s, const struct cuda_gemm *g, struct det_err *err)
{
    union factor one = factor_of(1, g->dtype), beta = factor_of(g->beta, g->dtype);
    cudaDataType t = type_of(g->dtype), of_c = g->wide ? CUDA_R_32F : t;
    int64_t count = g->count > 1 ? g->count : 1;
    cublasHandle_t blas = s->device->blas;
    if (g->m == 0 || g->n == 0)
        return 0;
    if (!fits(g))
        return det_fail(err, DET_EINVAL, "a matrix has more than %d rows or columns", INT_MAX);
    int rc = cuda_use(s->device, err);
    if (rc == 0)
        rc = cuda_check_blas(cublasSetStream(blas, s->native), "cublasSetStream", err);
    if (rc < 0)
        return rc;
    return cuda_check_blas(
        cublasGemmStridedBatchedEx(
            blas, g->tb ? CUBLAS_OP_T : CUBLAS_OP_N, g->ta ? CUBLAS_OP_T : CUBLAS_OP_N, (int)g->n,
            (int)g->m, (int)g->k, &one, g->b, t, (int)(g->ldb > 0 ? g->ldb : 1), g->b_step, g->a, t,
            (int)(g->lda > 0 ? g->lda : 1), g->a_step, &beta, g->c, of_c, (int)g->ldc, g->c_step,
            (int)count, compute_of(g->dtype), CUBLAS_GEMM_DEFAULT),
        "cublasGemmStridedBatchedEx", err);
}

struct finish {
    bool relu;
    template <typename T> __device__ T operator()(T v) const { return relu && v < 0 ? 0 : v; }
    template <typename T> __device__ T operator()(T v, T b) const { return (*this)(v + b); }
};

/* y as rows, whatever its own shape; the bias as one of them again and again. */
int cuda_finish_rows(struct det_stream *s, const struct det_call *c, const struct det_tensor *b,
                     struct det_tensor *y, int64_t n, struct det_err *err)
{
    struct finish f = {c->a.relu};
    struct det_tensor rows = *y, bias;
    struct det_call as = {.kernel = c->kernel, .in = {&rows, &bias}, .out = {&rows}};
    if (y->numel == 0 || (!b && !f.relu))
        return 0;
    rows.ndim = 2;
    rows.dims[0] = (int64_t)y->numel / n, rows.dims[1] = n;
    rows.strides[0] = n, rows.strides[1] = 1;
    if (!b)
        return y->dtype == DET_F64 ? cuda_map<double, 1>(s, &as, f, err)
                                   : cuda_map_packs<1>(s, &as, f, err);
    det__broadcast(b, 2, rows.dims, &bias);
    return y->dtype == DET_F64 ? cuda_map<double, 2>(s, &as, f, err)
                               : cuda_map_packs<2>(s, &as, f, err);
}

/* y [M, N] = x [M, K] w [N, K]^T + b */
int cuda_linear(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0], *w = c->in[1];
    int64_t m = x->dims[0], k = x->dims[1], n = w->dims[0];
    struct cuda_gemm g = {.dtype = x->dtype,
                          .ta = false,
                          .tb = true,
                          .m = m,
                          .n = n,
                          .k = k,
                          .lda = k,
                          .ldb = k,
                          .ldc = cuda_ld(c->out[0]),
                          .a = x->data,
                          .b = w->data,
                          .c = c->out[0]->data};
    const struct det_tensor *b = c->in[2];
    bool done = false;
    int rc = b && b->dtype == g.dtype ? cuda_lt(s, &g, CUDA_LT_BIAS, b->data, &done, err) : 0;
    if (rc < 0 || done)
        return rc;
    rc = cuda_gemm_even(s, c, &g, err);
    return rc < 0 ? rc : cuda_finish_rows(s, c, b, c->out[0], n, err);
}

/* Products of halves may be given as the f32 that they are summed in. */
static bool is_wider(const struct det_tensor *y, const struct det_tensor *x)
{
    return y->dtype == DET_F32 && x->dtype != DET_F32;
}

/* dx [M, K] = dy [M, N] w [N, K] */
int cuda_linear_bwd_data(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_tensor *dy = c->in[0], *w = c->in[1];
    int64_t m = dy->dims[0], n = dy->dims[1], k = w->dims[1];
    struct cuda_gemm g = {.dtype = dy->dtype,
                          .wide = is_wider(c->out[0], dy),
                          .ta = false,
                          .tb = false,
                          .m = m,
                          .n = k,
                          .k = n,
                          .lda = cuda_ld(dy),
                          .ldb = k,
                          .ldc = k,
                          .a = dy->data,
                          .b = w->data,
                          .c = c->out[0]->data};
    return cuda_gemm_even(s, c, &g, err);
}

/* dw [N, K] = dy [M, N]^T x [M, K] */
int cuda_linear_bwd_weight(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0], *dy = c->in[1];
    int64_t m = x->dims[0], k = x->dims[1], n = dy->dims[1];
    struct cuda_gemm g = {.dtype = x->dtype,
                          .wide = is_wider(c->out[0], x),
                          .ta = true,
                          .tb = false,
                          .m = n,
                          .n = k,
                          .k = m,
                          .lda = cuda_ld(dy),
                          .ldb = k,
                          .ldc = k,
                          .a = dy->data,
                          .b = x->data,
                          .c = c->out[0]->data};
    struct det_tensor *db = c->out[1];
    bool done = false;
    int rc = 0;
    if (db && db->dtype == c->out[0]->dtype)
        rc = cuda_lt(s, &g, CUDA_LT_SUMS, db->data, &done, err);
    if (rc < 0 || done)
        return rc;
    rc = cuda_gemm_even(s, c, &g, err);
    return rc < 0 || !db ? rc : cuda_sum_columns(s, c, dy, db, 1, err);
}

/* The batches of a MATMUL: dimensions, and each operand's distance along them (0: used for all). */
struct batches {
    int n;
    int64_t dims[DET_DIMS_MAX], step[3][DET_DIMS_MAX], count;
};

static struct batches batches_of(const struct det_call *c)
{
    const struct det_tensor *t[] = {c->in[0], c->in[1], c->out[0]};
    struct batches r = {.n = t[2]->ndim - 2, .count = 1};
    for (int d = 0; d < r.n; d++) {
        r.dims[d] = t[0]->dims[d] == 1 ? t[1]->dims[d] : t[0]->dims[d];
        r.count *= r.dims[d];
    }
    for (int k = 0; k < 3; k++) {
        int64_t step = t[k]->dims[r.n] * t[k]->dims[r.n + 1];
        for (int d = r.n - 1; d >= 0; d--) {
            r.step[k][d] = t[k]->dims[d] > 1 ? step : 0;
            step *= t[k]->dims[d];
        }
    }
    return r;
}

static int64_t offset_of(const struct batches *b, int k, int64_t i)
{
    int64_t offset = 0;
    for (int d = b->n - 1; d >= 0; i /= b->dims[d], d--)
        offset += i % b->dims[d] * b->step[k][d];
    return offset;
}

/* True where operand k of batch i begins at i * step, so that one call does all. */
static bool even(const struct batches *b, int k, int64_t *step)
{
    *step = b->count > 1 ? offset_of(b, k, 1) : 0;
    for (int64_t i = 0; i < b->count; i++)
        if (offset_of(b, k, i) != i * *step)
            return false;
    return true;
}

static int one_by_one(struct det_stream *s, const struct batches *b, struct cuda_gemm g,
                      struct det_err *err)
{
    int64_t size = (int64_t)det_dtype_size(g.dtype);
    const char *a = (const char *)g.a, *x = (const char *)g.b;
    char *y = (char *)g.c;
    int rc = 0;
    for (int64_t i = 0; rc == 0 && i < b->count; i++) {
        g.a = a + offset_of(b, 0, i) * size;
        g.b = x + offset_of(b, 1, i) * size;
        g.c = y + offset_of(b, 2, i) * size;
        rc = cuda_gemm(s, &g, err);
    }
    return rc;
}

int cuda_matmul(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_tensor *a = c->in[0], *b = c->in[1], *y = c->out[0];
    struct batches v = batches_of(c);
    int64_t wide_a = a->dims[a->ndim - 1], wide_b = b->dims[b->ndim - 1], n = y->dims[v.n + 1];
    struct cuda_gemm g = {.dtype = y->dtype,
                          .ta = c->a.trans_a,
                          .tb = c->a.trans_b,
                          .m = y->dims[v.n],
                          .n = n,
                          .k = c->a.trans_a ? a->dims[v.n] : wide_a,
                          .lda = wide_a,
                          .ldb = wide_b,
                          .ldc = n,
                          .a = a->data,
                          .b = b->data,
                          .c = y->data};
    bool summed = false;
    for (int d = 0; d < v.n; d++)
        summed = summed || (v.step[2][d] == 0 && v.dims[d] > 1);
    if (v.count == 0 || g.k == 0 || summed) {
        cudaError_t rc = cudaMemsetAsync(y->data, 0, det_tensor_bytes(y), s->native);
        if (rc != cudaSuccess || v.count == 0 || g.k == 0)
            return cuda_check(rc, "matmul", err);
        g.beta = 1;
        return one_by_one(s, &v, g, err);
    }
    if (!even(&v, 0, &g.a_step) || !even(&v, 1, &g.b_step) || !even(&v, 2, &g.c_step))
        return one_by_one(s, &v, g, err);
    g.count = v.count;
    return cuda_gemm_even(s, c, &g, err);
}

/* They look at the dtype of their tensors: one function for both tables. */
#define SAME_F64(name)                                                                             \
    int cuda_##name##_f64(struct det_stream *s, const struct det_call *c, struct det_err *err)     \
    {                                                                                              \
        return cuda_##name(s, c, err);                                                             \
    }
SAME_F64(linear)
SAME_F64(linear_bwd_data)
SAME_F64(linear_bwd_weight)
SAME_F64(matmul)
