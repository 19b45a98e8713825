/* Shapes and strides: sizes, texts, and the two memory orders of images. */
#include "tensor_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

int64_t det__shape_numel(enum det_dtype dtype, int ndim, const int64_t *dims)
{
    int64_t n = 1, max = DET__BYTES_MAX / (int64_t)det_dtype_size(dtype);
    bool zero = false;
    if (ndim < 0 || ndim > DET_DIMS_MAX)
        return -1;
    for (int i = 0; i < ndim; i++) {
        if (dims[i] < 0 || dims[i] > max)
            return -1;
        if (dims[i] == 0) {
            zero = true;
            continue;
        }
        if (n > max / dims[i])
            return -1;
        n *= dims[i];
    }
    return zero ? 0 : n;
}

int64_t det__shape_check(enum det_dtype dtype, int ndim, const int64_t *dims, struct det_err *err)
{
    if ((unsigned)dtype >= DET_DTYPE_COUNT)
        return det_fail(err, DET_EINVAL, "%d is no dtype", (int)dtype);
    if (ndim < 0 || ndim > DET_DIMS_MAX)
        return det_fail(err, DET_EINVAL, "a tensor has 0 to %d dimensions, not %d", DET_DIMS_MAX,
                        ndim);
    for (int d = 0; d < ndim; d++)
        if (dims[d] < 0)
            return det_fail(err, DET_EINVAL, "dimension %d is negative", d);
    int64_t numel = det__shape_numel(dtype, ndim, dims);
    if (numel < 0)
        return det_fail(err, DET_EINVAL,
                        "that is more than the %" PRId64 " bytes that a tensor may "
                        "have: take a smaller batch or model",
                        DET__BYTES_MAX);
    return numel;
}

bool det__same_shape(const struct det_tensor *a, const struct det_tensor *b)
{
    return a->ndim == b->ndim && memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof *a->dims) == 0;
}

bool det__layout_free(int ndim, const int64_t *dims)
{
    return ndim != 4 || dims[1] == 1 || dims[2] * dims[3] == 1;
}

static void plain_strides(int ndim, const int64_t *dims, int64_t *strides)
{
    int64_t step = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        strides[d] = step;
        step *= dims[d] ? dims[d] : 1;
    }
}

void det__set_layout(struct det_tensor *t, enum det_layout layout)
{
    t->layout = det__layout_free(t->ndim, t->dims) ? DET_LAYOUT_PLAIN : layout;
    plain_strides(t->ndim, t->dims, t->strides);
    if (t->layout != DET_LAYOUT_NHWC)
        return;
    int64_t c = t->dims[1], w = t->dims[3];
    memcpy(t->strides, (int64_t[4]){c * t->dims[2] * w, 1, c * w, c}, 4 * sizeof(int64_t));
}

/* The same places, where the stride of a dimension of one element means nothing. */
static bool same_strides(const struct det_tensor *t, const int64_t *strides)
{
    for (int d = 0; d < t->ndim; d++)
        if (t->dims[d] > 1 && t->strides[d] != strides[d])
            return false;
    return true;
}

void det__set_strides(struct det_tensor *t, const int64_t *strides)
{
    det__set_layout(t, DET_LAYOUT_PLAIN);
    if (t->numel == 0 || same_strides(t, strides))
        return;
    if (t->ndim == 4) {
        det__set_layout(t, DET_LAYOUT_NHWC);
        if (same_strides(t, strides))
            return;
    }
    t->layout = DET_LAYOUT_STRIDED;
    memcpy(t->strides, strides, (size_t)t->ndim * sizeof *strides);
}

void det__row_strides(int ndim, const int64_t *dims, int64_t step, int64_t strides[DET_DIMS_MAX])
{
    int64_t next = step;
    strides[ndim - 1] = 1;
    for (int d = ndim - 2; d >= 0; next *= dims[d], d--)
        strides[d] = next;
}

int64_t det__row_step(const struct det_tensor *t)
{
    int64_t strides[DET_DIMS_MAX], step;
    int d = t->ndim - 2;
    if (d < 0 || t->numel == 0)
        return 0;
    while (d > 0 && t->dims[d] == 1)
        d--;
    step = t->dims[d] > 1 ? t->strides[d] : t->dims[t->ndim - 1];
    det__row_strides(t->ndim, t->dims, step, strides);
    return step >= t->dims[t->ndim - 1] && same_strides(t, strides) ? step : 0;
}

bool det__broadcast(const struct det_tensor *t, int ndim, const int64_t *dims,
                    struct det_tensor *view)
{
    int64_t strides[DET_DIMS_MAX] = {0};
    int skip = ndim - t->ndim;
    if (skip < 0)
        return false;
    for (int d = skip; d < ndim; d++) {
        if (t->dims[d - skip] != dims[d] && t->dims[d - skip] != 1)
            return false;
        strides[d] = t->dims[d - skip] == dims[d] ? t->strides[d - skip] : 0;
    }
    *view = *t;
    view->ndim = ndim;
    view->numel = 1;
    for (int d = 0; d < ndim; d++) {
        view->dims[d] = dims[d];
        view->numel *= (size_t)dims[d];
    }
    det__set_strides(view, strides);
    return true;
}

const char *det__shape_text(enum det_dtype dtype, int ndim, const int64_t *dims, char *buf,
                            size_t n)
{
    int at = snprintf(buf, n, "%s[", det_dtype_name(dtype));
    for (int i = 0; i < ndim && i < DET_DIMS_MAX && (size_t)at < n; i++)
        at += snprintf(buf + at, n - (size_t)at, "%s%" PRId64, i ? ", " : "", dims[i]);
    if ((size_t)at < n)
        snprintf(buf + at, n - (size_t)at, "]");
    return buf;
}

const char *det__tensor_text(const struct det_tensor *t, char *buf, size_t n)
{
    if (!t) {
        snprintf(buf, n, "NULL");
        return buf;
    }
    return det__shape_text(t->dtype, t->ndim, t->dims, buf, n);
}
