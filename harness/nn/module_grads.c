/* All gradients of a module in one vector, and what is done to them as a whole. */
#include <math.h>

#include "mem.h"
#include "module.h"

#define ALIGN 16

static size_t pad_size(size_t n)
{
    return (n + ALIGN - 1) / ALIGN * ALIGN;
}

/* True where every parameter's gradient lies in m->grads, one after the other. */
static bool in_place(const struct det_module *m, const struct det_named_tensor *p, size_t n)
{
    if (!m->grads)
        return false;
    char *at = m->grads->data;
    for (size_t i = 0; i < n; i++) {
        if (!p[i].tensor->grad || p[i].tensor->grad->data != at)
            return false;
        at += pad_size(p[i].tensor->numel) * det_dtype_size(m->grads->dtype);
    }
    return at == m->grads->data + det_tensor_bytes(m->grads);
}

static int fill_zero(struct det_engine *e, struct det_tensor *t, struct det_err *err)
{
    return det__run(e, &(struct det_call){.kernel = DET_KERNEL_FILL, .out = {t}}, err);
}

/* Gives a parameter the part of `flat` at *at for its gradient. */
static int move_grad(struct det_engine *e, struct det_tensor *param, struct det_tensor *flat,
                     size_t *at, struct det_err *err)
{
    flat->storage->refs++;
    TENSOR_OWN part =
        det__tensor_over(flat->storage, flat->data + *at * det_dtype_size(flat->dtype), flat->dtype,
                         param->ndim, param->dims);
    part->engine = e;
    *at += pad_size(param->numel);
    int rc = param->grad_set ? det__copy(e, param->grad, part, err) : 0;
    if (rc < 0)
        return rc;
    det_tensor_unref(param->grad);
    param->grad = det_take(part);
    return 0;
}

static int build_flat(struct det_module *m, const struct det_named_tensor *p, size_t n,
                      struct det_err *err)
{
    TENSOR_OWN flat = NULL;
    size_t total = 0, at = 0;
    enum det_dtype dtype = DET_F32;
    for (size_t i = 0; i < n; i++) {
        total += pad_size(p[i].tensor->numel);
        dtype = p[i].tensor->dtype == DET_F64 ? DET_F64 : dtype;
    }
    int rc = det__tensor_new(m->engine, dtype, DET_LAYOUT_PLAIN, 1,
                             (int64_t[]){(int64_t)(total + n)}, &flat, err);
    if (rc == 0)
        rc = fill_zero(m->engine, flat, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = move_grad(m->engine, p[i].tensor, flat, &at, err);
    if (rc < 0)
        return rc;
    det_tensor_unref(m->grads);
    det_tensor_unref(m->grads_marked);
    m->grads = det__tensor_window(flat, 1, (int64_t[]){(int64_t)total}, (int64_t[]){1}, 0);
    m->grads_marked = det_take(flat);
    return 0;
}

int module_grads_place(struct det_module *m, struct det_err *err)
{
    size_t n;
    const struct det_named_tensor *p = det_module_params(m, &n);
    return in_place(m, p, n) ? 0 : build_flat(m, p, n, err);
}

int module_grads_fill(struct det_module *m, size_t from, size_t to, struct det_err *err)
{
    size_t n;
    const struct det_named_tensor *p = det_module_params(m, &n);
    int rc = 0;
    for (size_t i = from; rc == 0 && i < to; i++)
        if (!p[i].tensor->grad_set)
            rc = fill_zero(m->engine, p[i].tensor->grad, err);
    return rc;
}

struct det_tensor *det_module_grads(struct det_module *m)
{
    size_t n;
    struct det_err err;
    det_module_params(m, &n);
    if (!m || m->engine->err.code < 0)
        return NULL;
    int rc = m->engine->grads_leave ? det__grads_refuse("det_module_grads", &err)
                                    : module_grads_place(m, &err);
    if (rc == 0)
        rc = module_grads_fill(m, 0, n, &err);
    if (rc < 0) {
        det_wrap(&err, rc, "gradients of a module");
        det__keep_error(m->engine, &err);
        return NULL;
    }
    return m->grads;
}

void det_module_zero_grad(struct det_module *m)
{
    size_t n;
    const struct det_named_tensor *p = det_module_params(m, &n);
    for (size_t i = 0; i < n; i++)
        if (det__grad_check(p[i].tensor, "det_module_zero_grad") == 0)
            p[i].tensor->grad_set = false;
}

/* One number of all gradients, by a kernel that makes one of a vector; the caller owns it. */
static int number_of(struct det_engine *e, struct det_tensor *grads, enum det_kernel kernel,
                     struct det_tensor **ret, struct det_err *err)
{
    int rc = det__tensor_new(e, grads->dtype, DET_LAYOUT_PLAIN, 0, NULL, ret, err);
    return rc < 0 ? rc
                  : det__run(e, &(struct det_call){.kernel = kernel, .in = {grads}, .out = {*ret}},
                             err);
}

struct det_tensor *module_grads_most(struct det_module *m)
{
    TENSOR_OWN most = NULL;
    struct det_err err;
    struct det_tensor *grads = det_module_grads(m);
    if (!grads)
        return NULL;
    if (number_of(m->engine, grads, DET_KERNEL_ABSMAX, &most, &err) == 0)
        return det_take(most);
    det__keep_error(m->engine, &err);
    return NULL;
}

double det_module_grads_max(struct det_module *m)
{
    TENSOR_OWN most = module_grads_most(m);
    return most ? det_item(m->engine, most) : NAN;
}

void det_module_scale_grads(struct det_module *m, double factor)
{
    struct det_err err;
    struct det_tensor *grads = det_module_grads(m);
    struct det_call c = {
        .kernel = DET_KERNEL_AFFINE, .in = {grads}, .out = {grads}, .a.scale = factor};
    if (grads && det__run(m->engine, &c, &err) < 0)
        det__keep_error(m->engine, &err);
}

static int take_root(struct det_engine *e, struct det_tensor *t, struct det_err *err)
{
    struct det_call c = {.kernel = DET_KERNEL_UNARY, .in = {t}, .out = {t}, .a.fn = DET_UNARY_SQRT};
    return det__run(e, &c, err);
}

/* Nothing waits for the norm: what is to be done with it is the device's business. */
static struct det_tensor *clip_grads(struct det_module *m, enum det_kernel kernel, double max_norm)
{
    TENSOR_OWN norm = NULL;
    struct det_err err;
    struct det_tensor *grads = det_module_grads(m);
    if (!grads)
        return NULL;
    int rc = number_of(m->engine, grads, kernel, &norm, &err);
    struct det_call limit = {.kernel = DET_KERNEL_LIMIT,
                             .in = {norm},
                             .out = {grads},
                             .a = {.hi = max_norm, .eps = 1e-6}};
    if (rc == 0 && kernel == DET_KERNEL_SQNORM)
        rc = take_root(m->engine, norm, &err);
    if (rc == 0)
        rc = det__run(m->engine, &limit, &err);
    if (rc == 0)
        return det__keep(m->engine, det_take(norm));
    det__keep_error(m->engine, &err);
    return NULL;
}

struct det_tensor *det_clip_grad_norm(struct det_module *m, double max_norm)
{
    return clip_grads(m, DET_KERNEL_SQNORM, max_norm);
}

struct det_tensor *det_clip_grad_norm_inf(struct det_module *m, double max_norm)
{
    return clip_grads(m, DET_KERNEL_ABSMAX, max_norm);
}

void det_clip_grad_value(struct det_module *m, double max)
{
    struct det_err err;
    struct det_tensor *grads = det_module_grads(m);
    struct det_call c = {
        .kernel = DET_KERNEL_CLAMP, .in = {grads}, .out = {grads}, .a = {.lo = -max, .hi = max}};
    if (grads && det__run(m->engine, &c, &err) < 0)
        det__keep_error(m->engine, &err);
}
