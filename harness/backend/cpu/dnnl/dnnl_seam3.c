/* The seam to oneDNN 3: descriptors are on its heap, and a primitive is described in one step. */
#include "dnnl_seam.h"
#include "mem.h"

static dnnl_status_t describe_tensor(dnnl_memory_desc_t *ret, const struct seam_tensor *t)
{
    return dnnl_memory_desc_create_with_tag(ret, t->ndim, t->dims, t->type, t->tag);
}

dnnl_status_t seam_memory(dnnl_memory_t *ret, dnnl_engine_t engine, const struct seam_tensor *t)
{
    dnnl_memory_desc_t md = NULL;
    dnnl_status_t st = describe_tensor(&md, t);
    if (st == dnnl_success)
        st = dnnl_memory_create(ret, md, engine, DNNL_MEMORY_NONE);
    dnnl_memory_desc_destroy(md);
    return st;
}

/* x and y: the tensors that are multiplied and summed up, whatever the caller calls them. */
struct mds {
    dnnl_memory_desc_t x, w, b, y; /* b: NULL where there is no bias */
};

static void mds_finish(struct mds *m)
{
    dnnl_memory_desc_destroy(m->x);
    dnnl_memory_desc_destroy(m->w);
    dnnl_memory_desc_destroy(m->b);
    dnnl_memory_desc_destroy(m->y);
}

static dnnl_status_t describe_all(struct mds *ret, const struct seam_tensor *x,
                                  const struct seam_tensor *w, const struct seam_tensor *b,
                                  const struct seam_tensor *y)
{
    dnnl_status_t st = describe_tensor(&ret->x, x);
    if (st == dnnl_success)
        st = describe_tensor(&ret->w, w);
    if (st == dnnl_success && b->ndim > 0)
        st = describe_tensor(&ret->b, b);
    if (st == dnnl_success)
        st = describe_tensor(&ret->y, y);
    return st;
}

dnnl_status_t seam_conv_forward(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                const struct seam_conv *c, dnnl_primitive_attr_t attr)
{
    det_cleanup(mds_finish) struct mds m = {0};
    dnnl_status_t st = describe_all(&m, &c->x, &c->w, &c->b, &c->y);
    if (st != dnnl_success)
        return st;
    return dnnl_convolution_forward_primitive_desc_create(
        ret, engine, dnnl_forward_training, c->algorithm, m.x, m.w, m.b, m.y, c->strides,
        c->dilates, c->pad, c->end, attr);
}

dnnl_status_t seam_conv_backward_data(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                      const struct seam_conv *c, dnnl_primitive_desc_t forward,
                                      dnnl_primitive_attr_t attr)
{
    det_cleanup(mds_finish) struct mds m = {0};
    dnnl_status_t st = describe_all(&m, &c->x, &c->w, &c->b, &c->y);
    if (st != dnnl_success)
        return st;
    return dnnl_convolution_backward_data_primitive_desc_create(ret, engine, c->algorithm, m.x, m.w,
                                                                m.y, c->strides, c->dilates, c->pad,
                                                                c->end, forward, attr);
}

dnnl_status_t seam_conv_backward_weights(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                         const struct seam_conv *c, dnnl_primitive_desc_t forward,
                                         dnnl_primitive_attr_t attr)
{
    det_cleanup(mds_finish) struct mds m = {0};
    dnnl_status_t st = describe_all(&m, &c->x, &c->w, &c->b, &c->y);
    if (st != dnnl_success)
        return st;
    return dnnl_convolution_backward_weights_primitive_desc_create(
        ret, engine, c->algorithm, m.x, m.w, m.b, m.y, c->strides, c->dilates, c->pad, c->end,
        forward, attr);
}

dnnl_status_t seam_inner_product(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                 const struct seam_product *p)
{
    det_cleanup(mds_finish) struct mds m = {0};
    dnnl_status_t st = describe_all(&m, &p->a, &p->b, &p->bias, &p->y);
    if (st != dnnl_success)
        return st;
    return dnnl_inner_product_forward_primitive_desc_create(ret, engine, dnnl_forward_training, m.x,
                                                            m.w, m.b, m.y, NULL);
}

dnnl_status_t seam_matmul(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                          const struct seam_product *p)
{
    det_cleanup(mds_finish) struct mds m = {0};
    dnnl_status_t st = describe_all(&m, &p->a, &p->b, &p->bias, &p->y);
    return st == dnnl_success
               ? dnnl_matmul_primitive_desc_create(ret, engine, m.x, m.w, m.b, m.y, NULL)
               : st;
}
