/* Tensors of a document: facts, and copies of their elements in the engine's types. */
#include "dtype.h"
#include "pth_impl.h"
#include <string.h>

int pth_tensor_ndim(const struct pth_value *v)
{
    return pth_kind(v) == PTH_TENSOR ? v->tensor->ndim : 0;
}

const int64_t *pth_tensor_dims(const struct pth_value *v)
{
    return pth_kind(v) == PTH_TENSOR ? v->tensor->dims : NULL;
}

enum pth_dtype pth_tensor_dtype(const struct pth_value *v)
{
    return pth_kind(v) == PTH_TENSOR ? v->tensor->dtype : PTH_DTYPE_COUNT;
}

int64_t pth_view_numel(const struct pth_tensor_view *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++)
        n *= t->dims[i];
    return n;
}

int64_t pth_tensor_numel(const struct pth_value *v)
{
    return pth_kind(v) == PTH_TENSOR ? pth_view_numel(v->tensor) : 0;
}

bool pth_view_contiguous(const struct pth_tensor_view *t)
{
    int64_t stride = 1;
    if (pth_view_numel(t) == 0)
        return true;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->dims[i] != 1 && t->strides[i] != stride)
            return false;
        stride *= t->dims[i];
    }
    return true;
}

/* ---- element types ---- */

static const enum det_dtype dtypes[PTH_DTYPE_COUNT] = {
    [PTH_F32] = DET_F32, [PTH_F64] = DET_F64, [PTH_F16] = DET_F16, [PTH_BF16] = DET_BF16,
    [PTH_I64] = DET_I64, [PTH_I32] = DET_I32, [PTH_I16] = DET_I16, [PTH_I8] = DET_I8,
    [PTH_U8] = DET_U8,   [PTH_B8] = DET_BOOL,
};

enum det_dtype pth_to_dtype(enum pth_dtype dtype)
{
    return dtype < PTH_DTYPE_COUNT ? dtypes[dtype] : DET_DTYPE_COUNT;
}

enum pth_dtype pth_of_dtype(enum det_dtype dtype)
{
    int i = 0;
    while (i < PTH_DTYPE_COUNT && dtypes[i] != dtype)
        i++;
    return (enum pth_dtype)i;
}

/* ---- all of them ---- */

/* Row by row: the innermost dimension with its stride. */
static void read_strided(const struct pth_tensor_view *t, enum det_dtype want, char *out)
{
    int64_t at[DET_DIMS_MAX] = {0}, offset = 0, all = pth_view_numel(t);
    int64_t n = t->ndim > 0 ? t->dims[t->ndim - 1] : 1;
    int64_t stride = t->ndim > 0 ? t->strides[t->ndim - 1] : 1;
    size_t size = pth_dtype_size(t->dtype);
    for (int64_t i = 0; i < all; i += n) {
        det__convert(dtypes[t->dtype], t->data + offset * (int64_t)size, stride, want,
                     out + (size_t)i * det_dtype_size(want), 1, n);
        for (int d = t->ndim - 2; d >= 0; d--) {
            offset += t->strides[d];
            if (++at[d] < t->dims[d])
                break;
            offset -= t->strides[d] * t->dims[d];
            at[d] = 0;
        }
    }
}

int pth_tensor_read(const struct pth_value *v, enum det_dtype want, void *out, size_t bytes,
                    struct det_err *err)
{
    if (pth_kind(v) != PTH_TENSOR)
        return det_fail(err, DET_EINVAL, "a tensor is needed, not %s", pth_kind_name(pth_kind(v)));
    const struct pth_tensor_view *t = v->tensor;
    enum det_dtype have = dtypes[t->dtype];
    if (bytes != (size_t)pth_view_numel(t) * det_dtype_size(want))
        return det_fail(err, DET_EINVAL, "a tensor of %lld elements does not fill %zu bytes",
                        (long long)pth_view_numel(t), bytes);
    if (det__is_float(have) && !det__is_float(want))
        return det_fail(err, DET_EINVAL, "a tensor in %s cannot be read as %s",
                        pth_dtype_storage(t->dtype), det_dtype_name(want));
    if (have == want && pth_view_contiguous(t)) {
        if (bytes)
            memcpy(out, t->data, bytes);
    } else {
        read_strided(t, want, out);
    }
    return 0;
}
