/* A module in another floating dtype. */
#include "autocast.h"
#include "dtype.h"
#include "module.h"

/* t keeps its address, which optimizers and shared parameters know; what it holds is exchanged. */
static int convert_tensor(struct det_engine *e, struct det_tensor *t, enum det_dtype dtype,
                          struct det_err *err)
{
    TENSOR_OWN other = NULL;
    if (!det__is_float(t->dtype) || t->dtype == dtype)
        return 0;
    int rc = det__tensor_new(e, dtype, DET_LAYOUT_PLAIN, t->ndim, t->dims, &other, err);
    if (rc == 0)
        rc = det__copy(e, t, other, err);
    if (rc < 0)
        return rc;
    struct det_storage *storage = t->storage;
    autocast_wrote(e, storage);
    char *data = t->data;
    t->storage = other->storage;
    t->data = other->data;
    t->dtype = dtype;
    det__set_layout(t, DET_LAYOUT_PLAIN);
    other->storage = storage;
    other->data = data;
    det_tensor_unref(t->grad);
    t->grad = NULL;
    t->grad_set = false;
    return 0;
}

int det_module_to(struct det_module *m, enum det_dtype dtype)
{
    size_t n;
    struct det_err err;
    int rc = 0;
    const struct det_named_tensor *state = det_module_state(m, &n);
    if (!m || m->engine->err.code < 0)
        return m ? m->engine->err.code : DET_EINVAL;
    if (!det__is_float(dtype))
        return det_engine_fail(m->engine, DET_EINVAL,
                               "module_to: %s is no floating dtype: use DET_F64, DET_F32, "
                               "DET_BF16 or DET_F16",
                               det_dtype_name(dtype));
    for (size_t i = 0; i < n; i++)
        if ((rc = det__grad_check(state[i].tensor, "det_module_to")) < 0)
            return rc;
    for (size_t i = 0; rc == 0 && i < n; i++)
        rc = convert_tensor(m->engine, state[i].tensor, dtype, &err);
    if (rc == 0)
        return 0;
    det_wrap(&err, rc, "module_to");
    return det__keep_error(m->engine, &err);
}
