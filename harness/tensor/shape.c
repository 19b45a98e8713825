/* Dtypes and shapes: sizes, names, texts, and the two memory orders of images. */
#include "tensor_impl.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *name;
    size_t size;
} dtypes[DET_DTYPE_COUNT] = {
    [DET_F32] = {"float32", 4},
    [DET_I64] = {"int64", 8},
    [DET_U8] = {"uint8", 1},
};

size_t det_dtype_size(enum det_dtype dtype)
{
    return (unsigned)dtype < DET_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

const char *det_dtype_name(enum det_dtype dtype)
{
    return (unsigned)dtype < DET_DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

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

bool det__same_shape(const struct det_tensor *a, const struct det_tensor *b)
{
    return a->ndim == b->ndim && memcmp(a->dims, b->dims, (size_t)a->ndim * sizeof *a->dims) == 0;
}

bool det__layout_free(int ndim, const int64_t *dims)
{
    return ndim != 4 || dims[1] == 1 || dims[2] * dims[3] == 1;
}

const char *det__tensor_text(const struct det_tensor *t, char *buf, size_t n)
{
    if (!t) {
        snprintf(buf, n, "NULL");
        return buf;
    }
    int at = snprintf(buf, n, "%s[", det_dtype_name(t->dtype));
    for (int i = 0; i < t->ndim && (size_t)at < n; i++)
        at += snprintf(buf + at, n - (size_t)at, "%s%" PRId64, i ? ", " : "", t->dims[i]);
    if ((size_t)at < n)
        snprintf(buf + at, n - (size_t)at, "]");
    return buf;
}

/* dst[n][b][a] = src[n][a][b] for each of `count` matrices of a x b elements. */
static void transpose(int64_t count, int64_t a, int64_t b, size_t elem, const char *src, char *dst)
{
    for (int64_t n = 0; n < count; n++, src += a * b * (int64_t)elem, dst += a * b * (int64_t)elem)
        for (int64_t i = 0; i < a; i++)
            for (int64_t j = 0; j < b; j++)
                memcpy(dst + (j * a + i) * (int64_t)elem, src + (i * b + j) * (int64_t)elem, elem);
}

void det__nhwc_to_plain(const int64_t *dims, size_t elem, const void *src, void *dst)
{
    transpose(dims[0], dims[2] * dims[3], dims[1], elem, src, dst);
}

void det__plain_to_nhwc(const int64_t *dims, size_t elem, const void *src, void *dst)
{
    transpose(dims[0], dims[1], dims[2] * dims[3], elem, src, dst);
}
