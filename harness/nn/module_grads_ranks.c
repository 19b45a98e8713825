/*
 * Which parameters have a gradient, over all ranks. A part of the model that only some ranks'
 * batches go through has one there only; its mean over the ranks is everybody's, else the ranks
 * would end up with different weights. The marks travel in the same message as the gradients.
 */
#include "dtype.h"
#include "mem.h"
#include "module.h"

static struct det_tensor *marks_of(struct det_module *m, size_t n)
{
    return det__tensor_window(m->grads_marked, 1, (int64_t[]){(int64_t)n}, (int64_t[]){1},
                              (int64_t)m->grads->numel);
}

int module_grads_mark(struct det_module *m, struct det_err *err)
{
    size_t n;
    const struct det_named_tensor *p = det_module_params(m, &n);
    TENSOR_OWN marks = marks_of(m, n);
    size_t each = det_dtype_size(marks->dtype);
    det_cleanup(freep) char *v = det_alloc(n * each + 1);
    for (size_t i = 0; i < n; i++)
        det__store_f64(marks->dtype, v + i * each, p[i].tensor->grad_set);
    return det_tensor_write(marks, v, n * each, err);
}

struct det_tensor *module_grads_marked(struct det_module *m)
{
    struct det_err err;
    if (!det_module_grads(m))
        return NULL;
    if (module_grads_mark(m, &err) == 0)
        return m->grads_marked;
    det__keep_error(m->engine, &err);
    return NULL;
}

int module_grads_heard(struct det_module *m, struct det_err *err)
{
    size_t n, set = 0;
    const struct det_named_tensor *p = det_module_params(m, &n);
    for (size_t i = 0; i < n; i++)
        set += p[i].tensor->grad_set;
    if (set == n)
        return 0;
    TENSOR_OWN marks = marks_of(m, n);
    size_t each = det_dtype_size(marks->dtype);
    det_cleanup(freep) char *v = det_alloc(n * each + 1);
    int rc = det_tensor_read(marks, v, n * each, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        p[i].tensor->grad_set = det__load_f64(marks->dtype, v + i * each) > 0;
    return rc;
}
