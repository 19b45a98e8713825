/* cuBLASLt's product on the host, with a bias or the sums of an operand. */
#include "cublasLt.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "dtype.h"

#define WORK_BYTES 1024 /* that the one algorithm wants */

struct emulated_lt_op {
    cublasOperation_t ta, tb;
    cublasLtEpilogue_t extra;
    void *vector;
    bool is_tf32;
};

struct emulated_lt_matrix {
    cudaDataType type;
    long long rows, columns, ld;
};

struct emulated_lt_preference {
    size_t work;
    uint32_t align[4], sums;
};

cublasStatus_t cublasLtCreate(cublasLtHandle_t *ret)
{
    *ret = NULL;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t h)
{
    (void)h;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *ret, cublasComputeType_t compute,
                                        cudaDataType scale)
{
    bool is_tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32;
    if ((compute != CUBLAS_COMPUTE_32F && !is_tf32) || scale != CUDA_R_32F)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *ret = calloc(1, sizeof **ret);
    (*ret)->is_tf32 = is_tf32;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t op)
{
    free(op);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t set(void *to, size_t size, const void *v, size_t bytes)
{
    if (bytes != size)
        return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(to, v, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t op,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void *v, size_t bytes)
{
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return set(&op->ta, sizeof op->ta, v, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB: return set(&op->tb, sizeof op->tb, v, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return set(&op->extra, sizeof op->extra, v, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return set(&op->vector, sizeof op->vector, v, bytes);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *ret, cudaDataType type,
                                          uint64_t rows, uint64_t columns, int64_t ld)
{
    *ret = calloc(1, sizeof **ret);
    **ret = (struct emulated_lt_matrix){type, (long long)rows, (long long)columns, ld};
    return ld < (int64_t)rows ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
    free(l);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *ret)
{
    *ret = calloc(1, sizeof **ret);
    **ret = (struct emulated_lt_preference){0, {256, 256, 256, 256}, 7};
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t pref)
{
    free(pref);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t pref,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void *v, size_t bytes)
{
    switch ((int)attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
        return set(&pref->work, sizeof pref->work, v, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
        return set(&pref->sums, sizeof pref->sums, v, bytes);
    default:
        return set(&pref->align[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES],
                   sizeof pref->align[0], v, bytes);
    }
}

/* The algorithm carries what it was chosen for: how the matrices are aligned. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t h, cublasLtMatmulDesc_t op,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t pref, int most,
                                              cublasLtMatmulHeuristicResult_t *ret, int *ret_n)
{
    (void)h, (void)a, (void)b, (void)c, (void)d;
    emulated_count(EMULATED_QUERY, 0);
    *ret_n = 0;
    if (most < 1 || emulated_setting("EMULATED_LT", 1) == 0 || pref->work < WORK_BYTES ||
        pref->sums != CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE || !op->vector)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    *ret = (cublasLtMatmulHeuristicResult_t){.workspaceSize = WORK_BYTES,
                                             .state = CUBLAS_STATUS_SUCCESS};
    for (int i = 0; i < 4; i++)
        ret->algo.data[i] = pref->align[i];
    *ret_n = 1;
    return CUBLAS_STATUS_SUCCESS;
}

static enum det_dtype dtype_of(cudaDataType t)
{
    return t == CUDA_R_16F ? DET_F16 : t == CUDA_R_16BF ? DET_BF16 : DET_F32;
}

static size_t size_of(const struct emulated_lt_matrix *l)
{
    return det_dtype_size(dtype_of(l->type));
}

static int lies_there(const void *p, const struct emulated_lt_matrix *l, uint64_t align)
{
    return (uintptr_t)p % align == 0 &&
           emulated_is_array(p, size_of(l), (l->columns - 1) * l->ld + l->rows);
}

/* Element (i, j) of op(it). */
static double at(const void *p, const struct emulated_lt_matrix *l, int transposed, long long i,
                 long long j)
{
    long long e = transposed ? j + i * l->ld : i + j * l->ld;
    return det__load_f64(dtype_of(l->type), (const char *)p + e * (long long)size_of(l));
}

static void store(void *p, const struct emulated_lt_matrix *l, long long e, double v)
{
    det__store_f64(dtype_of(l->type), (char *)p + e * (long long)size_of(l), v);
}

struct product {
    struct emulated_lt_op op;
    const void *a, *b;
    struct emulated_lt_matrix la, lb, ld;
    void *d;
    long long k;
};

static void column(const struct product *w, long long j)
{
    bool has_bias = w->op.extra == CUBLASLT_EPILOGUE_BIAS;
    double of_b = 0;
    for (long long i = 0; i < w->ld.rows; i++) {
        double sum = has_bias ? at(w->op.vector, &w->ld, 0, i, 0) : 0;
        for (long long l = 0; l < w->k; l++)
            sum += at(w->a, &w->la, w->op.ta, i, l) * at(w->b, &w->lb, w->op.tb, l, j);
        store(w->d, &w->ld, i + j * w->ld.ld, sum);
    }
    for (long long l = 0; !has_bias && l < w->k; l++)
        of_b += at(w->b, &w->lb, w->op.tb, l, j);
    if (!has_bias)
        store(w->op.vector, &w->ld, j, of_b);
}

static void run_product(const void *arg)
{
    const struct product *w = arg;
    emulated_open();
    for (long long j = 0; j < w->ld.columns; j++)
        column(w, j);
    emulated_close();
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t op, const void *alpha,
                              const void *a, cublasLtMatrixLayout_t la, const void *b,
                              cublasLtMatrixLayout_t lb, const void *beta, const void *c,
                              cublasLtMatrixLayout_t lc, void *d, cublasLtMatrixLayout_t ld,
                              const cublasLtMatmulAlgo_t *algo, void *work, size_t work_bytes,
                              cudaStream_t s)
{
    (void)h;
    long long k = op->ta ? la->rows : la->columns;
    const struct product w = {*op, a, b, *la, *lb, *ld, d, k};
    long long vector = op->extra == CUBLASLT_EPILOGUE_BIAS ? ld->rows : ld->columns;
    if (k == 3 || *(const float *)alpha != 1 || *(const float *)beta != 0 || c != d || lc != ld ||
        k != (op->tb ? lb->columns : lb->rows) || ld->rows != (op->ta ? la->columns : la->rows) ||
        ld->columns != (op->tb ? lb->rows : lb->columns) || work_bytes < WORK_BYTES ||
        !emulated_is_array(work, 256, WORK_BYTES / 256) || !lies_there(a, la, algo->data[0]) ||
        !lies_there(b, lb, algo->data[1]) || !lies_there(d, ld, algo->data[3]) ||
        !emulated_is_array(op->vector, size_of(ld), vector))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (!emulated_takes(s))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    emulated_count(EMULATED_GEMM, (ld->rows * k + k * ld->columns) * (long long)size_of(la) +
                                      (ld->rows * ld->columns + vector) * (long long)size_of(ld));
    if (op->is_tf32)
        emulated_count(EMULATED_TF32, 0);
    if (emulated_is_empty())
        return CUBLAS_STATUS_SUCCESS;
    emulated_later(s, run_product, &w, sizeof w);
    return CUBLAS_STATUS_SUCCESS;
}
