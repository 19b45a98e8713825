/* cuBLAS's product on the host, element by element. */
#include "cublas_v2.h"

#include <stdlib.h>

#include "dtype.h"

const char *cublasGetStatusString(cublasStatus_t rc)
{
    return rc == CUBLAS_STATUS_SUCCESS            ? "success"
           : rc == CUBLAS_STATUS_EXECUTION_FAILED ? "execution failed"
                                                  : "not supported";
}

struct emulated_blas {
    cudaStream_t stream;
};

cublasStatus_t cublasCreate(cublasHandle_t *ret)
{
    *ret = calloc(1, sizeof **ret);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t h)
{
    free(h);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s)
{
    h->stream = s;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t mode)
{
    (void)h;
    return mode == CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION ? CUBLAS_STATUS_SUCCESS
                                                                    : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* A column-major matrix: element (i, j) of op(it). */
struct matrix {
    const char *p;
    enum det_dtype dtype;
    long long ld;
    int transposed;
};

static double at(const struct matrix *v, long long i, long long j)
{
    long long e = v->transposed ? j + i * v->ld : i + j * v->ld;
    return det__load_f64(v->dtype, v->p + e * (long long)det_dtype_size(v->dtype));
}

static enum det_dtype dtype_of(cudaDataType t)
{
    switch ((int)t) {
    case CUDA_R_64F: return DET_F64;
    case CUDA_R_16F: return DET_F16;
    case CUDA_R_16BF: return DET_BF16;
    default: return DET_F32;
    }
}

static void product(const struct matrix *a, const struct matrix *b, const struct matrix *c,
                    const int size[3], double beta)
{
    for (int j = 0; j < size[1]; j++)
        for (int i = 0; i < size[0]; i++) {
            double sum = beta == 0 ? 0 : beta * at(c, i, j);
            for (int l = 0; l < size[2]; l++)
                sum += at(a, i, l) * at(b, l, j);
            long long e = (i + j * c->ld) * (long long)det_dtype_size(c->dtype);
            det__store_f64(c->dtype, (char *)c->p + e, sum);
        }
}

/* The element after the last of `count` matrices of `columns` columns, `step` apart. */
static long long end_of(long long rows, long long columns, long long ld, long long step, int count)
{
    return (count - 1) * step + (columns - 1) * ld + rows;
}

/* All products of a call. */
struct batch {
    struct matrix a, b, c;
    long long step[3]; /* bytes from one to the next */
    int size[3], count;
    double beta;
};

static void run_batch(const void *arg)
{
    struct batch w = *(const struct batch *)arg;
    emulated_open();
    for (int i = 0; i < w.count; i++) {
        product(&w.a, &w.b, &w.c, w.size, w.beta);
        w.a.p += w.step[0], w.b.p += w.step[1], w.c.p += w.step[2];
    }
    emulated_close();
}

/* alpha and beta are of the type that is computed in. */
static double factor(const void *p, bool wide)
{
    return wide ? *(const double *)p : (double)*(const float *)p;
}

/* Products of halves may be given as f32. */
static bool fits(cudaDataType c, cudaDataType a)
{
    return c == a || (c == CUDA_R_32F && (a == CUDA_R_16BF || a == CUDA_R_16F));
}

cublasStatus_t cublasGemmStridedBatchedEx(
    cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m, int n, int k,
    const void *alpha, const void *a, cudaDataType type_a, int lda, long long a_step, const void *b,
    cudaDataType type_b, int ldb, long long b_step, const void *beta, void *c, cudaDataType type_c,
    int ldc, long long c_step, int count, cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    (void)algo;
    bool wide = compute == CUBLAS_COMPUTE_64F;
    /* What cuBLAS refuses: another type than is computed in, leading dimensions too small for the
     * matrices. */
    if (wide != (type_a == CUDA_R_64F) || type_b != type_a || !fits(type_c, type_a) ||
        factor(alpha, wide) != 1 || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m ||
        lda < 1 || ldb < 1 || m < 1 || n < 1 || k < 1 || count < 1)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    size_t size = det_dtype_size(dtype_of(type_a)), size_c = det_dtype_size(dtype_of(type_c));
    if (!emulated_is_array(a, size, end_of(ta ? k : m, ta ? m : k, lda, a_step, count)) ||
        !emulated_is_array(b, size, end_of(tb ? n : k, tb ? k : n, ldb, b_step, count)) ||
        !emulated_is_array(c, size_c, end_of(m, n, ldc, c_step, count)))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    emulated_count(EMULATED_GEMM, (((long long)m * k + (long long)k * n) * (long long)size +
                                   (long long)m * n * (long long)size_c) *
                                      count);
    if (compute == CUBLAS_COMPUTE_32F_FAST_TF32)
        emulated_count(EMULATED_TF32, 0);
    if (!emulated_takes(h->stream))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    if (emulated_is_empty())
        return CUBLAS_STATUS_SUCCESS;
    const struct batch w = {
        .a = {a, dtype_of(type_a), lda, ta == CUBLAS_OP_T},
        .b = {b, dtype_of(type_b), ldb, tb == CUBLAS_OP_T},
        .c = {c, dtype_of(type_c), ldc, 0},
        .step = {a_step * (long long)size, b_step * (long long)size, c_step * (long long)size_c},
        .size = {m, n, k},
        .count = count,
        .beta = factor(beta, wide)};
    emulated_later(h->stream, run_batch, &w, sizeof w);
    return CUBLAS_STATUS_SUCCESS;
}
