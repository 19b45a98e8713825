/* Tensors of a document: facts, and copies of their elements in the engine's types. */
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

static int64_t numel(const struct pth_tensor_view *t)
{
    int64_t n = 1;
    for (int i = 0; i < t->ndim; i++)
        n *= t->dims[i];
    return n;
}

int64_t pth_tensor_numel(const struct pth_value *v)
{
    return pth_kind(v) == PTH_TENSOR ? numel(v->tensor) : 0;
}

static bool contiguous(const struct pth_tensor_view *t)
{
    int64_t stride = 1;
    for (int i = t->ndim - 1; i >= 0; i--) {
        if (t->dims[i] != 1 && t->strides[i] != stride)
            return false;
        stride *= t->dims[i];
    }
    return true;
}

/* ---- one element ---- */

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float half(const char *p)
{
    uint16_t h;
    memcpy(&h, p, sizeof h);
    uint32_t sign = (uint32_t)(h >> 15) << 31, exp = h >> 10 & 31, frac = h & 1023;
    if (exp == 31)
        return from_bits(sign | 0x7f800000u | frac << 13);
    if (exp == 0) {
        float tiny = (float)frac * 0x1p-24f;
        return sign ? -tiny : tiny;
    }
    return from_bits(sign | (exp + 112) << 23 | frac << 13);
}

#define LOAD(type)                                                                                 \
    __extension__({                                                                                \
        type x_;                                                                                   \
        memcpy(&x_, p, sizeof x_);                                                                 \
        x_;                                                                                        \
    })

static bool is_float(enum pth_dtype dtype)
{
    return dtype == PTH_F32 || dtype == PTH_F64 || dtype == PTH_F16 || dtype == PTH_BF16;
}

static float load_float(enum pth_dtype dtype, const char *p)
{
    switch (dtype) {
    case PTH_F32: return LOAD(float);
    case PTH_F64: return (float)LOAD(double);
    case PTH_F16: return half(p);
    default: return from_bits((uint32_t)LOAD(uint16_t) << 16);
    }
}

static int64_t load_int(enum pth_dtype dtype, const char *p)
{
    switch (dtype) {
    case PTH_I64: return LOAD(int64_t);
    case PTH_I32: return LOAD(int32_t);
    case PTH_I16: return LOAD(int16_t);
    case PTH_I8: return LOAD(int8_t);
    default: return LOAD(uint8_t);
    }
}

static void store(enum pth_dtype from, const char *p, enum det_dtype want, char *out)
{
    if (want == DET_F32) {
        float f = is_float(from) ? load_float(from, p) : (float)load_int(from, p);
        memcpy(out, &f, sizeof f);
    } else if (want == DET_I64) {
        int64_t i = load_int(from, p);
        memcpy(out, &i, sizeof i);
    } else {
        *out = *p;
    }
}

static bool same_type(enum pth_dtype from, enum det_dtype want)
{
    return (from == PTH_F32 && want == DET_F32) || (from == PTH_I64 && want == DET_I64) ||
           ((from == PTH_U8 || from == PTH_B8) && want == DET_U8);
}

/* ---- all of them ---- */

static void read_strided(const struct pth_tensor_view *t, enum det_dtype want, char *out)
{
    int64_t at[DET_DIMS_MAX] = {0}, n = numel(t), offset = 0;
    size_t from_size = pth_dtype_size(t->dtype), to_size = det_dtype_size(want);
    for (int64_t i = 0; i < n; i++) {
        store(t->dtype, t->data + offset * (int64_t)from_size, want, out + (size_t)i * to_size);
        for (int d = t->ndim - 1; d >= 0; d--) {
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
    if (bytes != (size_t)numel(t) * det_dtype_size(want))
        return det_fail(err, DET_EINVAL, "a tensor of %lld elements does not fill %zu bytes",
                        (long long)numel(t), bytes);
    if ((is_float(t->dtype) && want != DET_F32) ||
        (want == DET_U8 && t->dtype != PTH_U8 && t->dtype != PTH_B8))
        return det_fail(err, DET_EINVAL, "a tensor in %s cannot be read as %s",
                        pth_dtype_storage(t->dtype), det_dtype_name(want));
    if (same_type(t->dtype, want) && contiguous(t)) {
        if (bytes)
            memcpy(out, t->data, bytes);
    } else {
        read_strided(t, want, out);
    }
    return 0;
}
