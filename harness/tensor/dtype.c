/* Dtypes: sizes, names, and conversions of single elements. */
#include "dtype.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[DET_DTYPE_COUNT] = {
    [DET_F32] = {"float32", 4}, [DET_F64] = {"float64", 8}, [DET_BF16] = {"bfloat16", 2},
    [DET_F16] = {"float16", 2}, [DET_I64] = {"int64", 8},   [DET_I32] = {"int32", 4},
    [DET_I16] = {"int16", 2},   [DET_I8] = {"int8", 1},     [DET_U8] = {"uint8", 1},
    [DET_BOOL] = {"bool", 1},
};

size_t det_dtype_size(enum det_dtype dtype)
{
    return (unsigned)dtype < DET_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

const char *det_dtype_name(enum det_dtype dtype)
{
    return (unsigned)dtype < DET_DTYPE_COUNT ? dtypes[dtype].name : "unknown";
}

/* An element at any address; compilers make this one instruction. */
#define LOAD(type)                                                                                 \
    __extension__({                                                                                \
        type x_;                                                                                   \
        memcpy(&x_, p, sizeof x_);                                                                 \
        x_;                                                                                        \
    })
#define STORE(type, value)                                                                         \
    do {                                                                                           \
        type x_ = (type)(value);                                                                   \
        memcpy(p, &x_, sizeof x_);                                                                 \
    } while (0)

double det__load_f64(enum det_dtype dtype, const void *p)
{
    switch (dtype) {
    case DET_F32: return LOAD(float);
    case DET_F64: return LOAD(double);
    case DET_BF16: return det__bf16_to_f32(LOAD(uint16_t));
    case DET_F16: return det__f16_to_f32(LOAD(uint16_t));
    case DET_I64:
    case DET_I32:
    case DET_I16:
    case DET_I8:
    case DET_U8:
    case DET_BOOL:
    case DET_DTYPE_COUNT: break;
    }
    return (double)det__load_i64(dtype, p);
}

int64_t det__load_i64(enum det_dtype dtype, const void *p)
{
    switch (dtype) {
    case DET_I64: return LOAD(int64_t);
    case DET_I32: return LOAD(int32_t);
    case DET_I16: return LOAD(int16_t);
    case DET_I8: return LOAD(int8_t);
    case DET_U8: return LOAD(uint8_t);
    case DET_BOOL: return LOAD(uint8_t) != 0;
    case DET_F32:
    case DET_F64:
    case DET_BF16:
    case DET_F16:
    case DET_DTYPE_COUNT: break;
    }
    return det__whole(det__load_f64(dtype, p), -0x1p63, 0x1p63);
}

/* To the nearest that the dtype has. */
static void store_whole(enum det_dtype dtype, void *p, double v)
{
    double most = (double)(UINT64_C(1) << (8 * det_dtype_size(dtype) - 1));
    det__store_i64(dtype, p, det__whole(v, -most, most < 0x1p63 ? most - 1 : most));
}

void det__store_f64(enum det_dtype dtype, void *p, double v)
{
    switch (dtype) {
    case DET_F32: STORE(float, v); break;
    case DET_F64: STORE(double, v); break;
    case DET_BF16: STORE(uint16_t, det__f32_to_bf16((float)v)); break;
    case DET_F16: STORE(uint16_t, det__f32_to_f16((float)v)); break;
    case DET_BOOL: STORE(uint8_t, v != 0); break;
    case DET_U8: STORE(uint8_t, det__whole(v, 0, 255)); break;
    case DET_I64:
    case DET_I32:
    case DET_I16:
    case DET_I8: store_whole(dtype, p, v); break;
    case DET_DTYPE_COUNT: break;
    }
}

void det__store_i64(enum det_dtype dtype, void *p, int64_t v)
{
    switch (dtype) {
    case DET_F32: STORE(float, v); break;
    case DET_I64: STORE(int64_t, v); break;
    case DET_I32: STORE(uint32_t, v); break;
    case DET_I16: STORE(uint16_t, v); break;
    case DET_I8:
    case DET_U8: STORE(uint8_t, v); break;
    case DET_BOOL: STORE(uint8_t, v != 0); break;
    case DET_F64: STORE(double, (double)v); break;
    case DET_BF16: STORE(uint16_t, det__f32_to_bf16((float)v)); break;
    case DET_F16: STORE(uint16_t, det__f32_to_f16((float)v)); break;
    case DET_DTYPE_COUNT: break;
    }
}

void det__convert(enum det_dtype from, const void *src, int64_t src_stride, enum det_dtype to,
                  void *dst, int64_t dst_stride, int64_t n)
{
    const char *x = src;
    char *y = dst;
    int64_t x_step = src_stride * (int64_t)det_dtype_size(from);
    int64_t y_step = dst_stride * (int64_t)det_dtype_size(to);
    for (int64_t i = 0; i < n; i++, x += x_step, y += y_step)
        if (from == to)
            memcpy(y, x, det_dtype_size(to));
        else if (det__is_float(from))
            det__store_f64(to, y, det__load_f64(from, x));
        else
            det__store_i64(to, y, det__load_i64(from, x));
}
