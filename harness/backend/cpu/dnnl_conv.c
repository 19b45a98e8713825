/*
 * Convolution by oneDNN: activations NHWC, weights in the order it likes best (reordered around
 * it), bias and ReLU in the same primitive.
 */
#include <string.h>

#include "dnnl_prim.h"
#include "mem.h"
#include "ref.h"

struct conv {
    dnnl_memory_desc_t x, y, b;  /* as the caller has them */
    dnnl_memory_desc_t w, w_any; /* the caller's order; "choose" */
    dnnl_dims_t strides, dilates, pad, end;
};

static int conv_describe(const struct prim_key *k, struct conv *v, struct det_err *err)
{
    int64_t g = k->groups;
    dnnl_data_type_t type = (dnnl_data_type_t)k->dtype;
    dnnl_dims_t x = {k->x[0], k->x[1], k->x[2], k->x[3]}, y = {k->x[0], k->w[0]};
    dnnl_dims_t w = {k->w[0], k->w[1], k->w[2], k->w[3]}, b = {k->w[0]};
    dnnl_dims_t grouped = {g, k->w[0] / g, k->w[1], k->w[2], k->w[3]};
    memset(v, 0, sizeof *v);
    for (int i = 0; i < 2; i++) {
        v->strides[i] = k->window.stride[i];
        v->dilates[i] = k->window.dilation[i] - 1;
        v->pad[i] = k->window.pad[i];
        v->end[i] = k->window.end[i];
        int64_t room = k->x[2 + i] + k->window.pad[i] + k->window.end[i] -
                       (k->w[2 + i] - 1) * k->window.dilation[i] - 1;
        y[2 + i] = room / k->window.stride[i] + 1;
    }
    dnnl_status_t st = dnnl_memory_desc_init_by_tag(&v->x, 4, x, type, dnnl_nhwc);
    if (st == dnnl_success)
        st = dnnl_memory_desc_init_by_tag(&v->y, 4, y, type, dnnl_nhwc);
    if (st == dnnl_success)
        st = g > 1 ? dnnl_memory_desc_init_by_tag(&v->w, 5, grouped, type, dnnl_goihw)
                   : dnnl_memory_desc_init_by_tag(&v->w, 4, w, type, dnnl_oihw);
    if (st == dnnl_success)
        st = dnnl_memory_desc_init_by_tag(&v->w_any, g > 1 ? 5 : 4, g > 1 ? grouped : w, type,
                                          dnnl_format_tag_any);
    if (st == dnnl_success)
        st = dnnl_memory_desc_init_by_tag(&v->b, 1, b, type, dnnl_x);
    return prim_check(st, "describe a convolution's tensors", err);
}

/* The attributes of y = max(0, y); NULL where there is no ReLU. */
static dnnl_status_t relu_attr(bool relu, dnnl_primitive_attr_t *ret)
{
    dnnl_post_ops_t ops = NULL;
    *ret = NULL;
    if (!relu)
        return dnnl_success;
    dnnl_status_t st = dnnl_post_ops_create(&ops);
    if (st == dnnl_success)
        st = dnnl_post_ops_append_eltwise(ops, 1, dnnl_eltwise_relu, 0, 0);
    if (st == dnnl_success)
        st = dnnl_primitive_attr_create(ret);
    if (st == dnnl_success)
        st = dnnl_primitive_attr_set_post_ops(*ret, ops);
    dnnl_post_ops_destroy(ops);
    return st;
}

static int forward_pd(struct prim_cache *cache, const struct prim_key *k, const struct conv *v,
                      dnnl_primitive_desc_t *ret, struct det_err *err)
{
    dnnl_convolution_desc_t d;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t st = dnnl_dilated_convolution_forward_desc_init(
        &d, dnnl_forward_training, dnnl_convolution_direct, &v->x, &v->w_any,
        k->bias ? &v->b : NULL, &v->y, v->strides, v->dilates, v->pad, v->end);
    if (st == dnnl_success)
        st = relu_attr(k->relu, &attr);
    if (st == dnnl_success)
        st = dnnl_primitive_desc_create(ret, &d, attr, prim_cache_engine(cache), NULL);
    dnnl_primitive_attr_destroy(attr);
    return prim_check(st, "describe a convolution", err);
}

static void pd_destroy(dnnl_primitive_desc_t *pd)
{
    dnnl_primitive_desc_destroy(*pd);
}

static int make_forward(struct prim_cache *cache, const struct prim_key *k, struct prim *p,
                        struct det_err *err)
{
    det_cleanup(pd_destroy) dnnl_primitive_desc_t pd = NULL;
    struct conv v;
    int rc = conv_describe(k, &v, err);
    if (rc == 0)
        rc = forward_pd(cache, k, &v, &pd, err);
    if (rc < 0)
        return rc;
    const struct prim_arg_spec specs[] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, v.x, false},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, v.w, false},
        {DNNL_ARG_DST, dnnl_query_dst_md, v.y, true},
        {DNNL_ARG_BIAS, dnnl_query_exec_arg_md, v.b, false},
    };
    return prim_build(cache, p, pd, specs, k->bias ? 4 : 3, err);
}

/* The descriptor of a gradient; it is made with the forward one as a hint. */
static int backward_pd(struct prim_cache *cache, const struct prim_key *k, const struct conv *v,
                       dnnl_primitive_desc_t *ret, struct det_err *err)
{
    det_cleanup(pd_destroy) dnnl_primitive_desc_t hint = NULL;
    dnnl_convolution_desc_t d;
    dnnl_status_t st;
    struct prim_key plain = *k;
    plain.relu = 0;
    int rc = forward_pd(cache, &plain, v, &hint, err);
    if (rc < 0)
        return rc;
    if (k->kernel == DET_KERNEL_CONV2D_BWD_DATA)
        st = dnnl_dilated_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, &v->x,
                                                              &v->w_any, &v->y, v->strides,
                                                              v->dilates, v->pad, v->end);
    else
        st = dnnl_dilated_convolution_backward_weights_desc_init(
            &d, dnnl_convolution_direct, &v->x, &v->w_any, k->bias ? &v->b : NULL, &v->y,
            v->strides, v->dilates, v->pad, v->end);
    if (st == dnnl_success)
        st = dnnl_primitive_desc_create(ret, &d, NULL, prim_cache_engine(cache), hint);
    return prim_check(st, "describe a convolution's gradient", err);
}

static int make_bwd_data(struct prim_cache *cache, const struct prim_key *k, struct prim *p,
                         struct det_err *err)
{
    det_cleanup(pd_destroy) dnnl_primitive_desc_t pd = NULL;
    struct conv v;
    int rc = conv_describe(k, &v, err);
    if (rc == 0)
        rc = backward_pd(cache, k, &v, &pd, err);
    if (rc < 0)
        return rc;
    const struct prim_arg_spec specs[] = {
        {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, v.y, false},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, v.w, false},
        {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, v.x, true},
    };
    return prim_build(cache, p, pd, specs, 3, err);
}

static int make_bwd_weight(struct prim_cache *cache, const struct prim_key *k, struct prim *p,
                           struct det_err *err)
{
    det_cleanup(pd_destroy) dnnl_primitive_desc_t pd = NULL;
    struct conv v;
    int rc = conv_describe(k, &v, err);
    if (rc == 0)
        rc = backward_pd(cache, k, &v, &pd, err);
    if (rc < 0)
        return rc;
    const struct prim_arg_spec specs[] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, v.x, false},
        {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, v.y, false},
        {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, v.w, true},
        {DNNL_ARG_DIFF_BIAS, dnnl_query_exec_arg_md, v.b, true},
    };
    return prim_build(cache, p, pd, specs, k->bias ? 4 : 3, err);
}

static struct prim_key key_of(const struct det_call *c, const struct det_tensor *x,
                              const struct det_tensor *w, bool bias)
{
    struct prim_key k;
    memset(&k, 0, sizeof k);
    k.kernel = (int32_t)c->kernel;
    const struct det_attrs *a = &c->a;
    k.window = (struct prim_window){{a->stride_h, a->stride_w},
                                    {a->dilation_h, a->dilation_w},
                                    {a->pad_h, a->pad_w},
                                    {a->end_h, a->end_w}};
    k.groups = a->groups;
    k.dtype = (int32_t)prim_dtype(x);
    k.relu = c->kernel == DET_KERNEL_CONV2D && c->a.relu;
    k.bias = bias;
    memcpy(k.x, x->dims, sizeof k.x);
    memcpy(k.w, w->dims, sizeof k.w);
    return k;
}

int cpu_conv2d(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct prim_cache *cache = cpu_device(s)->prims;
    struct prim_key k = key_of(c, c->in[0], c->in[1], c->in[2] != NULL);
    struct prim *p;
    int rc = prim_get(cache, &k, make_forward, &p, err);
    if (rc < 0)
        return rc;
    void *data[] = {c->in[0]->data, c->in[1]->data, c->out[0]->data,
                    c->in[2] ? c->in[2]->data : NULL};
    return prim_run(cache, p, data, err);
}

int cpu_conv2d_bwd_data(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct prim_cache *cache = cpu_device(s)->prims;
    struct prim_key k = key_of(c, c->out[0], c->in[1], false);
    struct prim *p;
    int rc = prim_get(cache, &k, make_bwd_data, &p, err);
    if (rc < 0)
        return rc;
    void *data[] = {c->in[0]->data, c->in[1]->data, c->out[0]->data};
    return prim_run(cache, p, data, err);
}

/* oneDNN sums the bias' gradient of f32 images pixel by pixel, so that is done here. */
static int bias_grad(struct det_stream *s, const struct det_tensor *dy, struct det_tensor *db,
                     struct det_err *err)
{
    int64_t n = dy->dims[1];
    return cpu_column_sums(cpu_device(s)->threads, (const float *)(const void *)dy->data,
                           (int64_t)dy->numel / n, n, (float *)(void *)db->data, err);
}

int cpu_conv2d_bwd_weight(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct prim_cache *cache = cpu_device(s)->prims;
    const struct det_tensor *dy = c->in[1];
    struct det_tensor *db = c->out[1];
    bool own = db && dy->dtype == DET_F32;
    struct prim_key k = key_of(c, c->in[0], c->out[0], db && !own);
    struct prim *p;
    int rc = prim_get(cache, &k, make_bwd_weight, &p, err);
    if (rc < 0)
        return rc;
    void *data[] = {c->in[0]->data, dy->data, c->out[0]->data, db ? db->data : NULL};
    rc = prim_run(cache, p, data, err);
    return rc == 0 && own ? bias_grad(s, dy, db, err) : rc;
}
