/*
 * Convolution by oneDNN: activations NHWC, weights in the order it likes best (reordered around
 * it), the bias in the same primitive.
 *
 * 3x3 convolutions of stride 1 take Winograd's way where oneDNN has it (Lavin & Gray 2015: tiles of
 * 4x4 pixels, a quarter of the multiplications), images reordered around it too. It is chosen by
 * the shapes and the thread count alone, so equal runs stay equal to the bit; its rounding error is
 * about twice the direct way's.
 */
#include <omp.h>
#include <string.h>

#include "dnnl_prim.h"
#include "mem.h"
#include "ref.h"

/* Where Winograd's way pays: its order has blocks of 16 channels, and it turns all weights into
 * tiles on each call. */
#define WINOGRAD_BLOCK    16
#define WINOGRAD_CHANNELS 32
#define WINOGRAD_PIXELS   1024

struct conv {
    struct seam_tensor x, w, y; /* as the caller has them */
    struct seam_conv own;       /* as the primitive has them */
};

static int64_t out_size(const struct prim_key *k, int i)
{
    const struct prim_window *w = &k->window;
    int64_t room = k->x[2 + i] + w->pad[i] + w->end[i] - (k->w[2 + i] - 1) * w->dilation[i] - 1;
    return room / w->stride[i] + 1;
}

static struct conv conv_describe(const struct prim_key *k)
{
    int64_t g = k->groups;
    dnnl_data_type_t type = (dnnl_data_type_t)k->dtype;
    struct conv v = {
        .x = {4, {k->x[0], k->x[1], k->x[2], k->x[3]}, type, dnnl_nhwc},
        .w = {4, {k->w[0], k->w[1], k->w[2], k->w[3]}, type, dnnl_oihw},
        .y = {4, {k->x[0], k->w[0], out_size(k, 0), out_size(k, 1)}, type, dnnl_nhwc},
    };
    if (g > 1)
        v.w =
            (struct seam_tensor){5, {g, k->w[0] / g, k->w[1], k->w[2], k->w[3]}, type, dnnl_goihw};
    v.own = (struct seam_conv){.algorithm = dnnl_convolution_direct, .x = v.x, .w = v.w, .y = v.y};
    v.own.w.tag = dnnl_format_tag_any;
    if (k->bias)
        v.own.b = (struct seam_tensor){1, {k->w[0]}, type, dnnl_x};
    for (int i = 0; i < 2; i++) {
        v.own.strides[i] = k->window.stride[i];
        v.own.dilates[i] = k->window.dilation[i] - 1;
        v.own.pad[i] = k->window.pad[i];
        v.own.end[i] = k->window.end[i];
    }
    return v;
}

static dnnl_status_t forward_pd(struct prim_cache *cache, const struct seam_conv *v,
                                dnnl_primitive_desc_t *ret)
{
    dnnl_primitive_attr_t attr = NULL;
    dnnl_status_t st = prim_attr(&attr);
    if (st == dnnl_success)
        st = seam_conv_forward(ret, prim_cache_engine(cache), v, attr);
    dnnl_primitive_attr_destroy(attr);
    return st;
}

static void pd_destroy(dnnl_primitive_desc_t *pd)
{
    dnnl_primitive_desc_destroy(*pd);
}

static dnnl_status_t conv_pd(struct prim_cache *cache, const struct prim_key *k,
                             const struct seam_conv *v, dnnl_primitive_desc_t *ret)
{
    if (k->kernel == DET_KERNEL_CONV2D)
        return forward_pd(cache, v, ret);
    det_cleanup(pd_destroy) dnnl_primitive_desc_t forward = NULL;
    dnnl_primitive_attr_t attr = NULL;
    dnnl_engine_t engine = prim_cache_engine(cache);
    dnnl_status_t st = forward_pd(cache, v, &forward);
    if (st == dnnl_success)
        st = prim_attr(&attr);
    if (st == dnnl_success)
        st = k->kernel == DET_KERNEL_CONV2D_BWD_DATA
                 ? seam_conv_backward_data(ret, engine, v, forward, attr)
                 : seam_conv_backward_weights(ret, engine, v, forward, attr);
    dnnl_primitive_attr_destroy(attr);
    return st;
}

static bool winograd_shape(const struct prim_key *k)
{
    const struct prim_window *w = &k->window;
    return k->dtype == dnnl_f32 && k->groups == 1 && k->w[2] == 3 && k->w[3] == 3 &&
           w->stride[0] == 1 && w->stride[1] == 1 && w->dilation[0] == 1 && w->dilation[1] == 1 &&
           k->w[0] % WINOGRAD_BLOCK == 0 && k->w[0] >= WINOGRAD_CHANNELS &&
           k->w[1] % WINOGRAD_BLOCK == 0 && k->w[1] >= WINOGRAD_CHANNELS &&
           k->x[0] * k->x[2] * k->x[3] >= WINOGRAD_PIXELS;
}

/* With few channels a thread works through some tiles at a time; with many, the tiles of all images
 * lie in memory at once, which is too much to pay for the speed. */
static bool winograd_fits(const_dnnl_primitive_desc_t pd)
{
    const int64_t mib = 1 << 20;
    seam_md_t md = dnnl_primitive_desc_query_md(pd, dnnl_query_scratchpad_md, 0);
    return md && (int64_t)dnnl_memory_desc_get_size(md) <= (24 + 2 * omp_get_max_threads()) * mib;
}

/* False where a convolution is better done directly, or oneDNN has no other way for it. */
static bool winograd_pd(struct prim_cache *cache, const struct prim_key *k,
                        const struct seam_conv *v, dnnl_primitive_desc_t *ret)
{
    det_cleanup(pd_destroy) dnnl_primitive_desc_t pd = NULL;
    struct seam_conv own = *v;
    own.algorithm = dnnl_convolution_winograd;
    own.x.tag = own.y.tag = dnnl_nChw16c;
    if (!winograd_shape(k) || conv_pd(cache, k, &own, &pd) || !winograd_fits(pd))
        return false;
    *ret = det_take(pd);
    return true;
}

static int make_conv(struct prim_cache *cache, const struct prim_key *k, struct prim *p,
                     struct det_err *err)
{
    det_cleanup(pd_destroy) dnnl_primitive_desc_t pd = NULL;
    struct conv v = conv_describe(k);
    if (!winograd_pd(cache, k, &v.own, &pd)) {
        int rc = prim_check(conv_pd(cache, k, &v.own, &pd), "describe a convolution", err);
        if (rc < 0)
            return rc;
    }
    const struct prim_arg_spec forward[] = {
        {DNNL_ARG_SRC, dnnl_query_src_md, v.x, false},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, v.w, false},
        {DNNL_ARG_DST, dnnl_query_dst_md, v.y, true},
        {DNNL_ARG_BIAS, dnnl_query_exec_arg_md, v.own.b, false},
    };
    const struct prim_arg_spec by_data[] = {
        {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, v.y, false},
        {DNNL_ARG_WEIGHTS, dnnl_query_weights_md, v.w, false},
        {DNNL_ARG_DIFF_SRC, dnnl_query_diff_src_md, v.x, true},
    };
    const struct prim_arg_spec by_weight[] = {
        {DNNL_ARG_DIFF_DST, dnnl_query_diff_dst_md, v.y, false}, /* the first, as in by_data */
        {DNNL_ARG_DIFF_WEIGHTS, dnnl_query_diff_weights_md, v.w, true},
        {DNNL_ARG_SRC, dnnl_query_src_md, v.x, false},
        {DNNL_ARG_DIFF_BIAS, dnnl_query_exec_arg_md, v.own.b, true},
    };
    const struct prim_arg_spec *specs = k->kernel == DET_KERNEL_CONV2D            ? forward
                                        : k->kernel == DET_KERNEL_CONV2D_BWD_DATA ? by_data
                                                                                  : by_weight;
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
    k.bias = bias;
    memcpy(k.x, x->dims, sizeof k.x);
    memcpy(k.w, w->dims, sizeof k.w);
    return k;
}

/* oneDNN's own, in the same primitive, makes 0 of NaN: a network that has diverged would go on. */
static int apply_relu(struct det_stream *s, struct det_tensor *y, struct det_err *err)
{
    return cpu_relu(s, &(struct det_call){.in = {y}, .out = {y}}, err);
}

int cpu_conv2d(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct prim_cache *cache = cpu_device(s)->prims;
    struct prim_key k = key_of(c, c->in[0], c->in[1], c->in[2] != NULL);
    struct prim *p;
    int rc = prim_get(cache, &k, make_conv, &p, err);
    if (rc < 0)
        return rc;
    void *data[] = {c->in[0]->data, c->in[1]->data, c->out[0]->data,
                    c->in[2] ? c->in[2]->data : NULL};
    rc = prim_run(cache, p, data, err);
    return rc == 0 && c->a.relu ? apply_relu(s, c->out[0], err) : rc;
}

int cpu_conv2d_bwd_data(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct prim_cache *cache = cpu_device(s)->prims;
    struct prim_key k = key_of(c, c->out[0], c->in[1], false);
    struct prim *p;
    int rc = prim_get(cache, &k, make_conv, &p, err);
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
    return CPU(column_sums)(cpu_device(s)->threads, (const float *)(const void *)dy->data,
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
    int rc = prim_get(cache, &k, make_conv, &p, err);
    if (rc < 0)
        return rc;
    void *data[] = {dy->data, c->out[0]->data, c->in[0]->data, db ? db->data : NULL};
    rc = prim_run_same(cache, p, data, c->a.same_dy ? dy->data : NULL, err);
    return rc == 0 && own ? bias_grad(s, dy, db, err) : rc;
}
