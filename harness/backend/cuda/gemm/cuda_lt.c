#include "cuda_lt.h"

#include <cublasLt.h>
#include <limits.h>
#include <string.h>

#include "map.h"
#include "mem.h"

#define WORK_MAX  ((size_t)32 << 20) /* what an algorithm may want */
#define TRIES     8                  /* algorithms that are looked at */
#define PLANS_MAX 1024               /* products of every shape: the plans begin anew */
#define ALIGNED   16                 /* the most bytes that an algorithm asks for */

/* All that decides; compared and hashed as bytes. */
struct key {
    int64_t m, n, k, lda, ldb, ldc;
    int32_t dtype, wide, extra, ta, tb, align, vector_align;
};

/* How a product of some shape is done. */
struct plan {
    struct key key;
    cublasLtMatmulDesc_t op;
    cublasLtMatrixLayout_t a, b, c; /* column-major, as cuBLASLt has them: a is our B */
    cublasLtMatmulAlgo_t algo;
    size_t work_bytes;
    bool refused;
};

struct cuda_lt {
    cublasLtHandle_t handle;
    struct imap *plans; /* by the hash of their keys */
};

static void plan_destroy(struct plan *p)
{
    if (p->op)
        cublasLtMatmulDescDestroy(p->op);
    if (p->a)
        cublasLtMatrixLayoutDestroy(p->a);
    if (p->b)
        cublasLtMatrixLayoutDestroy(p->b);
    if (p->c)
        cublasLtMatrixLayoutDestroy(p->c);
    free(p);
}

static void forget_plans(struct cuda_lt *lt)
{
    uint64_t key;
    void *value;
    for (size_t it = 0; imap_next(lt->plans, &it, &key, &value);)
        plan_destroy(value);
    imap_destroy(lt->plans);
    lt->plans = imap_create();
}

void cuda_lt_finish(struct det_device *d)
{
    if (!d->lt)
        return;
    forget_plans(d->lt);
    imap_destroy(d->lt->plans);
    cublasLtDestroy(d->lt->handle);
    free(d->lt);
    d->lt = NULL;
}

static int open_lt(struct det_device *d, struct det_err *err)
{
    cublasLtHandle_t handle;
    if (d->lt)
        return 0;
    int rc = cuda_check_blas(cublasLtCreate(&handle), "cublasLtCreate", err);
    if (rc < 0)
        return rc;
    d->lt = det_zalloc(sizeof *d->lt);
    d->lt->handle = handle;
    d->lt->plans = imap_create();
    return 0;
}

/* FNV-1a (Fowler, Noll and Vo). */
static uint64_t hash_key(const struct key *k)
{
    const unsigned char *p = (const unsigned char *)k;
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < sizeof *k; i++)
        h = (h ^ p[i]) * 1099511628211u;
    return h;
}

/* The power of two that an address is a multiple of, 16 at most. */
static int32_t align_of_address(uintptr_t address)
{
    int32_t align = ALIGNED;
    while (address % (uintptr_t)align != 0)
        align /= 2;
    return align;
}

/* What all matrices begin at a multiple of. */
static int32_t align_of_gemm(const struct cuda_gemm *g)
{
    return align_of_address((uintptr_t)g->a | (uintptr_t)g->b | (uintptr_t)g->c);
}

static struct key key_of(const struct cuda_gemm *g, enum cuda_lt_extra extra, const void *vector)
{
    struct key k;
    memset(&k, 0, sizeof k);
    k.m = g->m, k.n = g->n, k.k = g->k;
    k.lda = g->lda, k.ldb = g->ldb, k.ldc = g->ldc;
    k.dtype = (int32_t)g->dtype, k.wide = g->wide, k.extra = (int32_t)extra;
    k.ta = g->ta, k.tb = g->tb, k.align = align_of_gemm(g);
    k.vector_align = align_of_address((uintptr_t)vector);
    return k;
}

static bool can_use_lt(const struct cuda_gemm *g)
{
    return g->dtype != DET_F64 && g->m > 0 && g->n > 0 && g->k > 0 && g->m <= INT_MAX &&
           g->n <= INT_MAX && g->k <= INT_MAX && g->count <= 1 && g->beta == 0;
}

static cudaDataType type_of(int32_t dtype)
{
    return dtype == DET_BF16 ? CUDA_R_16BF : dtype == DET_F16 ? CUDA_R_16F : CUDA_R_32F;
}

#define SET(p, what, v)                                                                            \
    cublasLtMatmulDescSetAttribute((p)->op, CUBLASLT_MATMUL_DESC_##what, &(v), sizeof(v))

/* A matrix [rows, columns] of rows `ld` apart is cuBLASLt's [columns, rows]. */
static cublasStatus_t describe_matrix(cublasLtMatrixLayout_t *ret, int32_t dtype, int64_t rows,
                                      int64_t columns, int64_t ld)
{
    return cublasLtMatrixLayoutCreate(ret, type_of(dtype), (uint64_t)columns, (uint64_t)rows, ld);
}

/* Row-major C = A B is column-major C^T = B^T A^T: the operands change places, C's rows are its
 * columns. */
static cublasStatus_t describe_all(struct plan *p)
{
    const struct key *k = &p->key;
    cublasOperation_t ta = k->tb ? CUBLAS_OP_T : CUBLAS_OP_N,
                      tb = k->ta ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasLtEpilogue_t extra =
        k->extra == CUDA_LT_BIAS ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_BGRADB;
    bool is_tf32 = k->dtype == DET_F32 && cuda_allows_tf32();
    cublasStatus_t rc = cublasLtMatmulDescCreate(
        &p->op, is_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F, CUDA_R_32F);
    if (rc != CUBLAS_STATUS_SUCCESS || (rc = SET(p, TRANSA, ta)) != CUBLAS_STATUS_SUCCESS ||
        (rc = SET(p, TRANSB, tb)) != CUBLAS_STATUS_SUCCESS ||
        (rc = SET(p, EPILOGUE, extra)) != CUBLAS_STATUS_SUCCESS ||
        (rc = describe_matrix(&p->a, k->dtype, k->tb ? k->n : k->k, k->tb ? k->k : k->n, k->ldb)) !=
            CUBLAS_STATUS_SUCCESS ||
        (rc = describe_matrix(&p->b, k->dtype, k->ta ? k->k : k->m, k->ta ? k->m : k->k, k->lda)) !=
            CUBLAS_STATUS_SUCCESS)
        return rc;
    return describe_matrix(&p->c, k->wide ? DET_F32 : k->dtype, k->m, k->n, k->ldc);
}

static cublasStatus_t prefer_alignment(cublasLtMatmulPreference_t pref, int32_t align)
{
    const size_t work = WORK_MAX;
    const uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE, bytes = (uint32_t)align;
    static const cublasLtMatmulPreferenceAttributes_t pointers[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES};
    cublasStatus_t rc = cublasLtMatmulPreferenceSetAttribute(
        pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &work, sizeof work);
    if (rc == CUBLAS_STATUS_SUCCESS)
        rc = cublasLtMatmulPreferenceSetAttribute(pref, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                                  &sums, sizeof sums);
    for (size_t i = 0; i < DET_ARRAY_LEN(pointers) && rc == CUBLAS_STATUS_SUCCESS; i++)
        rc = cublasLtMatmulPreferenceSetAttribute(pref, pointers[i], &bytes, sizeof bytes);
    return rc;
}

/* What cuBLASLt has for this shape, best first. */
static cublasStatus_t ask_algorithms(struct cuda_lt *lt, struct plan *p, void *vector,
                                     cublasLtMatmulHeuristicResult_t found[TRIES], int *n)
{
    cublasLtMatmulPreference_t pref = NULL;
    cublasStatus_t rc = describe_all(p);
    if (rc == CUBLAS_STATUS_SUCCESS) /* its address tells how it is aligned */
        rc = SET(p, BIAS_POINTER, vector);
    if (rc == CUBLAS_STATUS_SUCCESS)
        rc = cublasLtMatmulPreferenceCreate(&pref);
    if (rc == CUBLAS_STATUS_SUCCESS)
        rc = prefer_alignment(pref, p->key.align);
    if (rc == CUBLAS_STATUS_SUCCESS)
        rc = cublasLtMatmulAlgoGetHeuristic(lt->handle, p->op, p->a, p->b, p->c, p->c, pref, TRIES,
                                            found, n);
    if (pref)
        cublasLtMatmulPreferenceDestroy(pref);
    return rc;
}

/* Only a refusal of the shape is kept; a moment without memory is not the shape's. */
static bool is_refusal(cublasStatus_t rc)
{
    return rc == CUBLAS_STATUS_NOT_SUPPORTED || rc == CUBLAS_STATUS_INVALID_VALUE;
}

/* Fills the plan's algorithm, or refused. */
static int choose_algorithm(struct cuda_lt *lt, struct plan *p, void *vector, struct det_err *err)
{
    cublasLtMatmulHeuristicResult_t found[TRIES];
    int n = 0;
    cublasStatus_t rc = ask_algorithms(lt, p, vector, found, &n);
    p->refused = true;
    if (rc != CUBLAS_STATUS_SUCCESS && !is_refusal(rc))
        return cuda_check_blas(rc, "a choice of cuBLASLt's", err);
    for (int i = 0; rc == CUBLAS_STATUS_SUCCESS && i < n && p->refused; i++) {
        if (found[i].state != CUBLAS_STATUS_SUCCESS || found[i].workspaceSize > WORK_MAX)
            continue;
        p->algo = found[i].algo;
        p->work_bytes = found[i].workspaceSize;
        p->refused = false;
    }
    return 0;
}

static int plan_of(struct cuda_lt *lt, const struct key *key, void *vector, struct plan **ret,
                   struct det_err *err)
{
    uint64_t hash = hash_key(key);
    *ret = imap_get(lt->plans, hash);
    if (*ret && memcmp(&(*ret)->key, key, sizeof *key) == 0)
        return 0;
    struct plan *p = det_zalloc(sizeof *p);
    p->key = *key;
    int rc = choose_algorithm(lt, p, vector, err);
    if (rc < 0) {
        plan_destroy(p);
        return rc;
    }
    if (imap_size(lt->plans) >= PLANS_MAX)
        forget_plans(lt);
    struct plan *same_hash = imap_put(lt->plans, hash, p);
    if (same_hash)
        plan_destroy(same_hash);
    *ret = p;
    return 0;
}

int cuda_lt(struct det_stream *s, const struct cuda_gemm *g, enum cuda_lt_extra extra, void *vector,
            bool *ret_done, struct det_err *err)
{
    static const float one = 1, zero = 0;
    void *work = NULL;
    *ret_done = false;
    if (!can_use_lt(g))
        return 0;
    int rc = cuda_use(s->device, err);
    if (rc < 0 || (rc = open_lt(s->device, err)) < 0)
        return rc;
    struct cuda_lt *lt = s->device->lt;
    const struct key key = key_of(g, extra, vector);
    struct plan *p;
    if ((rc = plan_of(lt, &key, vector, &p, err)) < 0)
        return rc;
    if (p->refused || (rc = cuda_workspace(s->device, p->work_bytes, &work, err)) < 0)
        return rc;
    cublasStatus_t done = SET(p, BIAS_POINTER, vector);
    if (done == CUBLAS_STATUS_SUCCESS)
        done = cublasLtMatmul(lt->handle, p->op, &one, g->b, p->a, g->a, p->b, &zero, g->c, p->c,
                              g->c, p->c, &p->algo, work, p->work_bytes, s->native);
    p->refused = is_refusal(done); /* what only the call itself finds out */
    *ret_done = !p->refused;
    return p->refused ? 0 : cuda_check_blas(done, "cublasLtMatmul", err);
}
