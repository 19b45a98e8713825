/*
 * A linear layer and its gradients in bf16 by oneDNN's matmul, which sums in f32: y = a b, where a
 * and b are the call's tensors, one of them read transposed.
 */
#include <assert.h>
#include <string.h>

#include "dnnl_prim.h"
#include "dtype.h"
#include "mem.h"

/* The tensors of the product: rows x depth, depth x columns. */
struct product {
    int64_t rows, depth, columns;
    bool a_turned, b_turned;
};

static struct product product_of(const struct prim_key *k)
{
    int64_t m = k->x[0], in = k->x[1], out = k->w[0];
    if (k->kernel == DET_KERNEL_LINEAR) /* x w^T */
        return (struct product){m, in, out, false, true};
    if (k->kernel == DET_KERNEL_LINEAR_BWD_DATA) /* dy w */
        return (struct product){m, out, in, false, false};
    assert(k->kernel == DET_KERNEL_LINEAR_BWD_WEIGHT); /* dy^T x */
    return (struct product){out, m, in, true, false};
}

static void pd_destroy(dnnl_primitive_desc_t *pd)
{
    dnnl_primitive_desc_destroy(*pd);
}

static struct seam_tensor matrix_of(int64_t rows, int64_t columns, bool turned)
{
    return (struct seam_tensor){2, {rows, columns}, dnnl_bf16, turned ? dnnl_ba : dnnl_ab};
}

static int make_product(struct prim_cache *cache, const struct prim_key *k, struct prim *p,
                        struct det_err *err)
{
    det_cleanup(pd_destroy) dnnl_primitive_desc_t pd = NULL;
    struct product g = product_of(k);
    struct seam_product v = {
        .a = matrix_of(g.rows, g.depth, g.a_turned),
        .b = matrix_of(g.depth, g.columns, g.b_turned),
        .y = matrix_of(g.rows, g.columns, false),
    };
    if (k->bias)
        v.bias = matrix_of(1, g.columns, false);
    int rc = prim_check(seam_matmul(&pd, prim_cache_engine(cache), &v),
                        "describe a product in bf16", err);
    if (rc < 0)
        return rc;
    const struct prim_arg_spec specs[] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, v.a, false},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, v.b, false},
        {DNNL_ARG_DST, dnnl_query_dst_md, v.y, true},
        {DNNL_ARG_BIAS, dnnl_query_exec_arg_md, v.bias, false},
    };
    return prim_build(cache, p, pd, specs, k->bias ? 4 : 3, err);
}

static int bias_grad(const struct det_tensor *dy, struct det_tensor *db, struct det_err *err)
{
    int64_t m = dy->dims[0], n = dy->dims[1];
    const uint16_t *x = (const uint16_t *)(const void *)dy->data;
    uint16_t *y = (uint16_t *)(void *)db->data;
    det_cleanup(freep) float *sum = det_try_alloc((size_t)n * sizeof *sum + 1);
    if (!sum)
        return det_fail(err, DET_ENOMEM, "no memory for %lld sums", (long long)n);
    memset(sum, 0, (size_t)n * sizeof *sum);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++)
            sum[j] += det__bf16_to_f32(x[i * n + j]);
    for (int64_t j = 0; j < n; j++)
        y[j] = det__f32_to_bf16(sum[j]);
    return 0;
}

int cpu_linear_bf16(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct prim_cache *cache = cpu_device(s)->prims;
    bool weight = c->kernel == DET_KERNEL_LINEAR_BWD_WEIGHT;
    const struct det_tensor *dy = c->in[1], *bias = weight ? NULL : c->in[2];
    const struct det_tensor *x = c->kernel == DET_KERNEL_LINEAR_BWD_DATA ? c->out[0] : c->in[0];
    const struct det_tensor *w = weight ? c->out[0] : c->in[1];
    struct prim_key k;
    struct prim *p;
    memset(&k, 0, sizeof k);
    k.kernel = (int32_t)c->kernel;
    k.dtype = dnnl_bf16;
    k.bias = bias != NULL;
    memcpy(k.x, x->dims, 2 * sizeof *k.x);
    memcpy(k.w, w->dims, 2 * sizeof *k.w);
    int rc = weight && c->out[1] ? bias_grad(dy, c->out[1], err) : 0;
    if (rc == 0)
        rc = prim_get(cache, &k, make_product, &p, err);
    if (rc < 0)
        return rc;
    void *data[] = {weight ? dy->data : c->in[0]->data, weight ? c->in[0]->data : c->in[1]->data,
                    c->out[0]->data, bias ? bias->data : NULL};
    return prim_run(cache, p, data, err);
}
