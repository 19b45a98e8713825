/* The seam to oneDNN 2: descriptors are values, and a primitive is described in two steps. */
#include "dnnl_seam.h"

static dnnl_status_t describe_tensor(dnnl_memory_desc_t *ret, const struct seam_tensor *t)
{
    return dnnl_memory_desc_init_by_tag(ret, t->ndim, t->dims, t->type, t->tag);
}

dnnl_status_t seam_memory(dnnl_memory_t *ret, dnnl_engine_t engine, const struct seam_tensor *t)
{
    dnnl_memory_desc_t md;
    dnnl_status_t st = describe_tensor(&md, t);
    return st == dnnl_success ? dnnl_memory_create(ret, &md, engine, DNNL_MEMORY_NONE) : st;
}

/* x and y: the tensors that are multiplied and summed up, whatever the caller calls them. */
struct mds {
    dnnl_memory_desc_t x, w, b, y;
    const dnnl_memory_desc_t *bias; /* b, or NULL */
};

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
    ret->bias = b->ndim > 0 ? &ret->b : NULL;
    return st;
}

dnnl_status_t seam_conv_forward(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                const struct seam_conv *c, dnnl_primitive_attr_t attr)
{
    struct mds m;
    dnnl_convolution_desc_t d;
    dnnl_status_t st = describe_all(&m, &c->x, &c->w, &c->b, &c->y);
    if (st == dnnl_success)
        st = dnnl_dilated_convolution_forward_desc_init(&d, dnnl_forward_training, c->algorithm,
                                                        &m.x, &m.w, m.bias, &m.y, c->strides,
                                                        c->dilates, c->pad, c->end);
    return st == dnnl_success ? dnnl_primitive_desc_create(ret, &d, attr, engine, NULL) : st;
}

dnnl_status_t seam_conv_backward_data(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                      const struct seam_conv *c, dnnl_primitive_desc_t forward,
                                      dnnl_primitive_attr_t attr)
{
    struct mds m;
    dnnl_convolution_desc_t d;
    dnnl_status_t st = describe_all(&m, &c->x, &c->w, &c->b, &c->y);
    if (st == dnnl_success)
        st = dnnl_dilated_convolution_backward_data_desc_init(
            &d, c->algorithm, &m.x, &m.w, &m.y, c->strides, c->dilates, c->pad, c->end);
    return st == dnnl_success ? dnnl_primitive_desc_create(ret, &d, attr, engine, forward) : st;
}

dnnl_status_t seam_conv_backward_weights(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                         const struct seam_conv *c, dnnl_primitive_desc_t forward,
                                         dnnl_primitive_attr_t attr)
{
    struct mds m;
    dnnl_convolution_desc_t d;
    dnnl_status_t st = describe_all(&m, &c->x, &c->w, &c->b, &c->y);
    if (st == dnnl_success)
        st = dnnl_dilated_convolution_backward_weights_desc_init(
            &d, c->algorithm, &m.x, &m.w, m.bias, &m.y, c->strides, c->dilates, c->pad, c->end);
    return st == dnnl_success ? dnnl_primitive_desc_create(ret, &d, attr, engine, forward) : st;
}

dnnl_status_t seam_inner_product(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                 const struct seam_product *p)
{
    struct mds m;
    dnnl_inner_product_desc_t d;
    dnnl_status_t st = describe_all(&m, &p->a, &p->b, &p->bias, &p->y);
    if (st == dnnl_success)
        st = dnnl_inner_product_forward_desc_init(&d, dnnl_forward_training, &m.x, &m.w, m.bias,
                                                  &m.y);
    return st == dnnl_success ? dnnl_primitive_desc_create(ret, &d, NULL, engine, NULL) : st;
}

dnnl_status_t seam_matmul(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                          const struct seam_product *p)
{
    struct mds m;
    dnnl_matmul_desc_t d;
    dnnl_status_t st = describe_all(&m, &p->a, &p->b, &p->bias, &p->y);
    if (st == dnnl_success)
        st = dnnl_matmul_desc_init(&d, &m.x, &m.w, m.bias, &m.y);
    return st == dnnl_success ? dnnl_primitive_desc_create(ret, &d, NULL, engine, NULL) : st;
}
