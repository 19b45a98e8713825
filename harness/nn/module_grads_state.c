/* Gradients that wait for the next update (aggregation_frequency above 1), as bytes of a
 * checkpoint: for each parameter one byte, whether it has a gradient; then the vector of
 * det_module_grads(). */
#include "buf.h"
#include "module.h"

#include <string.h>

int module_grads_pack(struct det_module *m, struct buf *out, struct det_err *err)
{
    size_t n;
    const struct det_named_tensor *p = det_module_params(m, &n);
    struct det_tensor *g = n ? det_module_grads(m) : NULL;
    if (!g)
        return det_engine_error(m->engine, err);
    for (size_t i = 0; i < n; i++)
        buf_add_ch(out, (char)p[i].tensor->grad_set);
    size_t bytes = det_tensor_bytes(g);
    buf_reserve(out, bytes);
    int rc = det_tensor_read(g, out->p + out->len, bytes, err);
    if (rc == 0)
        out->len += bytes;
    return rc;
}

int module_grads_unpack(struct det_module *m, const char **at, size_t *left, struct det_err *err)
{
    size_t n;
    const struct det_named_tensor *p = det_module_params(m, &n);
    struct det_tensor *g = n ? det_module_grads(m) : NULL;
    if (!g)
        return det_engine_error(m->engine, err);
    size_t bytes = det_tensor_bytes(g);
    if (*left < n || *left - n < bytes)
        return det_fail(err, DET_ECORRUPT,
                        "accumulated gradients: %zu bytes where the model needs %zu", *left,
                        n + bytes);
    int rc = det_tensor_write(g, *at + n, bytes, err);
    for (size_t i = 0; rc == 0 && i < n; i++)
        p[i].tensor->grad_set = (*at)[i] != 0;
    *at += n + bytes;
    *left -= n + bytes;
    return rc;
}
