/*
 * y = x w^T + b and its gradients by oneDNN: its sgemm (row-major), and for a large forward product
 * the primitive that reorders the weights.
 */
#include <string.h>

#include "dnnl_prim.h"
#include "mem.h"
#include "ref.h"

/* How a product is laid out: C [m, n] = op(A) op(B), with the leading dimensions of A and B. */
struct gemm {
    char trans_a, trans_b;
    int64_t m, n, k, lda, ldb;
};

static int run_gemm(const struct gemm *g, const float *a, const float *b, float beta, float *y,
                    struct det_err *err)
{
    return prim_check(prim_sgemm(g->trans_a, g->trans_b, g->m, g->n, g->k, 1, a, g->lda, b, g->ldb,
                                 beta, y, g->n),
                      "sgemm", err);
}

/* From this many multiplications on, and for so many rows, reordering the weights for the better
 * kernel pays. */
#define LARGE      ((int64_t)1 << 22)
#define LARGE_ROWS 128

static void pd_destroy(dnnl_primitive_desc_t *pd)
{
    dnnl_primitive_desc_destroy(*pd);
}

static struct seam_tensor tensor_of(int ndim, int64_t rows, int64_t columns, dnnl_format_tag_t tag)
{
    return (struct seam_tensor){ndim, {rows, columns}, dnnl_f32, tag};
}

static int make_product(struct prim_cache *cache, const struct prim_key *k, struct prim *p,
                        struct det_err *err)
{
    det_cleanup(pd_destroy) dnnl_primitive_desc_t pd = NULL;
    struct seam_tensor w = tensor_of(2, k->w[0], k->w[1], dnnl_ab);
    const struct seam_product v = {
        .a = tensor_of(2, k->x[0], k->x[1], dnnl_ab),
        .b = tensor_of(2, k->w[0], k->w[1], dnnl_format_tag_any),
        .bias = tensor_of(k->bias ? 1 : 0, k->w[0], 0, dnnl_a),
        .y = tensor_of(2, k->x[0], k->w[0], dnnl_ab),
    };
    int rc = prim_check(seam_inner_product(&pd, prim_cache_engine(cache), &v), "describe a product",
                        err);
    if (rc < 0)
        return rc;
    const struct prim_arg_spec specs[] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, v.a, false},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, w, false},
        {DNNL_ARG_DST, dnnl_query_dst_md, v.y, true},
        {DNNL_ARG_BIAS, dnnl_query_exec_arg_md, v.bias, false},
    };
    return prim_build(cache, p, pd, specs, k->bias ? 4 : 3, err);
}

static int large_linear(struct prim_cache *cache, const struct det_call *c, struct det_err *err)
{
    struct prim_key k;
    struct prim *p;
    memset(&k, 0, sizeof k);
    k.kernel = (int32_t)c->kernel;
    k.bias = c->in[2] != NULL;
    k.dtype = dnnl_f32;
    memcpy(k.x, c->in[0]->dims, 2 * sizeof *k.x);
    memcpy(k.w, c->in[1]->dims, 2 * sizeof *k.w);
    int rc = prim_get(cache, &k, make_product, &p, err);
    if (rc < 0)
        return rc;
    void *data[] = {c->in[0]->data, c->in[1]->data, c->out[0]->data,
                    c->in[2] ? c->in[2]->data : NULL};
    return prim_run(cache, p, data, err);
}

int cpu_linear(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    if (c->in[0]->dtype == DET_BF16)
        return cpu_linear_bf16(s, c, err);
    int64_t m = c->in[0]->dims[0], k = c->in[0]->dims[1], n = c->in[1]->dims[0];
    const float *b = in_f32(c, 2);
    float *y = out_f32(c, 0);
    if (m >= LARGE_ROWS && m * n * k >= LARGE)
        return large_linear(cpu_device(s)->prims, c, err);
    for (int64_t i = 0; b && i < m; i++)
        memcpy(y + i * n, b, (size_t)n * sizeof *y);
    const struct gemm g = {'N', 'T', m, n, k, k, k};
    return run_gemm(&g, in_f32(c, 0), in_f32(c, 1), b ? 1 : 0, y, err);
}

int cpu_linear_bwd_data(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    if (c->in[0]->dtype == DET_BF16)
        return cpu_linear_bf16(s, c, err);
    int64_t m = c->in[0]->dims[0], n = c->in[0]->dims[1], k = c->in[1]->dims[1];
    const struct gemm g = {'N', 'N', m, k, n, n, k};
    return run_gemm(&g, in_f32(c, 0), in_f32(c, 1), 0, out_f32(c, 0), err);
}

int cpu_linear_bwd_weight(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    if (c->in[0]->dtype == DET_BF16)
        return cpu_linear_bf16(s, c, err);
    int64_t m = c->in[0]->dims[0], k = c->in[0]->dims[1], n = c->in[1]->dims[1];
    int rc = c->out[1]
                 ? CPU(column_sums)(cpu_device(s)->threads, in_f32(c, 1), m, n, out_f32(c, 1), err)
                 : 0;
    const struct gemm g = {'T', 'N', n, k, m, n, k};
    return rc < 0 ? rc : run_gemm(&g, in_f32(c, 1), in_f32(c, 0), 0, out_f32(c, 0), err);
}
