/*
 * Where oneDNN 2 and 3 differ for us: how tensors and primitives are described. Both are met
 * through these few functions, dnnl_seam2.c or dnnl_seam3.c as oneDNN's version is.
 *
 * A tensor is described by value: what oneDNN makes of that lives within a call, or belongs to the
 * memory or primitive descriptor that the call makes.
 */
#ifndef DNNL_SEAM_H
#define DNNL_SEAM_H

#include <dnnl.h>

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t seam_md_t;
#else
typedef const dnnl_memory_desc_t *seam_md_t;
#endif

struct seam_tensor {
    int ndim; /* 0: a bias that is missing */
    dnnl_dims_t dims;
    dnnl_data_type_t type;
    dnnl_format_tag_t tag; /* dnnl_format_tag_any: oneDNN chooses the order */
};

struct seam_conv {
    dnnl_alg_kind_t algorithm;
    struct seam_tensor x, w, b, y; /* or their gradients */
    dnnl_dims_t strides, dilates, pad, end;
};

/* y = a b + bias; of an inner product b is transposed. */
struct seam_product {
    struct seam_tensor a, b, bias, y;
};

/* A tensor without bytes yet. */
dnnl_status_t seam_memory(dnnl_memory_t *ret, dnnl_engine_t engine, const struct seam_tensor *t);

dnnl_status_t seam_conv_forward(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                const struct seam_conv *c, dnnl_primitive_attr_t attr);
/* The gradient of x; `forward`: a descriptor of what it is the gradient of, as in the next one. */
dnnl_status_t seam_conv_backward_data(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                      const struct seam_conv *c, dnnl_primitive_desc_t forward,
                                      dnnl_primitive_attr_t attr);
/* The gradients of w and b. */
dnnl_status_t seam_conv_backward_weights(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                         const struct seam_conv *c, dnnl_primitive_desc_t forward,
                                         dnnl_primitive_attr_t attr);
dnnl_status_t seam_inner_product(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                                 const struct seam_product *p);
dnnl_status_t seam_matmul(dnnl_primitive_desc_t *ret, dnnl_engine_t engine,
                          const struct seam_product *p);

#endif
