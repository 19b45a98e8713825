/*
 * oneDNN primitives, made once for each shape and kept: the pattern that all dnnl_*.c share.
 *
 * A primitive's tensors have a plain order that we know (the user's) and one that oneDNN chose.
 * Where they differ, a reorder and a buffer are made with the primitive and run around it.
 */
#ifndef DNNL_PRIM_H
#define DNNL_PRIM_H

#include "cpu_dgemm.h"
#include "cpu_real.h"
#include "dnnl_seam.h"

#define PRIM_ARGS_MAX 4

/* How a convolution's kernel moves, in rows and columns. */
struct prim_window {
    int32_t stride[2], dilation[2], pad[2], end[2];
};

/* What makes two calls the same primitive. Cleared with memset before it is filled: it is compared
 * as bytes. */
struct prim_key {
    int32_t kernel; /* enum det_kernel */
    int32_t bias, groups;
    int32_t dtype; /* dnnl_data_type_t of all tensors */
    struct prim_window window;
    int64_t x[4], w[4];
};

struct prim;

/* Makes the primitive for a key: fills `p` by prim_build(). */
typedef int prim_make_fn(struct prim_cache *cache, const struct prim_key *key, struct prim *p,
                         struct det_err *err);

/* One tensor of a primitive: its oneDNN name (DNNL_ARG_*), which of pd's descriptors it has, and
 * the order of the caller's bytes. */
struct prim_arg_spec {
    int arg;
    dnnl_query_t query; /* dnnl_query_src_md, ... */
    struct seam_tensor user;
    bool output;
};

DET_MUST int prim_cache_create(struct prim_cache **ret, struct det_err *err);
void prim_cache_destroy(struct prim_cache *cache);
dnnl_engine_t prim_cache_engine(struct prim_cache *cache);

/* The primitive of a key, made on first use. Borrowed. */
DET_MUST int prim_get(struct prim_cache *cache, const struct prim_key *key, prim_make_fn *make,
                      struct prim **ret, struct det_err *err);
/* The attributes of a primitive that works in our memory; *ret may be set on errors too. */
dnnl_status_t prim_attr(dnnl_primitive_attr_t *ret);
/* For a prim_make_fn: completes `p` from a primitive descriptor (borrowed) and its n tensors. */
DET_MUST int prim_build(struct prim_cache *cache, struct prim *p, const_dnnl_primitive_desc_t pd,
                        const struct prim_arg_spec *specs, int n, struct det_err *err);
/* Runs it on the caller's bytes, in the order of the specs. `same`: bytes that have not changed
 * since the run before, if that had them too: in the same place they need not be put in order
 * again. NULL: none. */
DET_MUST int prim_run_same(struct prim_cache *cache, struct prim *p, void *const *data,
                           const void *same, struct det_err *err);
DET_MUST int prim_run(struct prim_cache *cache, struct prim *p, void *const *data,
                      struct det_err *err);

/* dnnl_sgemm: y [m, n] = alpha op(a) op(b) + beta y, row-major. To be called instead of it. */
dnnl_status_t prim_sgemm(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha,
                         const float *a, int64_t lda, const float *b, int64_t ldb, float beta,
                         float *y, int64_t ldy);

/* The product of the type that a file is compiled for (cpu_real.h). */
#ifdef REF_F64
static inline dnnl_status_t prim_gemm(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k,
                                      double alpha, const double *a, int64_t lda, const double *b,
                                      int64_t ldb, double beta, double *y, int64_t ldy)
{
    cpu_dgemm(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, y, ldy);
    return dnnl_success;
}
#else
#define prim_gemm prim_sgemm
#endif

/* oneDNN's name of f32 or bf16. */
static inline dnnl_data_type_t prim_dtype(const struct det_tensor *t)
{
    return t->dtype == DET_BF16 ? dnnl_bf16 : dnnl_f32;
}

/* 0, or an error that names what was tried. */
DET_MUST int prim_check(dnnl_status_t status, const char *what, struct det_err *err);

#endif
