/* Conversions between dtypes, and copies between any strides. */
#include "cpu_rows.h"

#include <string.h>

#include "dtype.h"
#include "ref.h"
#include "walk.h"

typedef void convert_fn(const void *src, int64_t step, void *dst, int64_t n);

#define CONVERT(name, from, to, expression)                                                        \
    CPU_CLONES static void name(const void *src, int64_t step, void *dst, int64_t n)               \
    {                                                                                              \
        const from *restrict x = src;                                                              \
        to *restrict y = dst;                                                                      \
        if (step == 1)                                                                             \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (expression(x[i]));                                                         \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = (expression(x[i * step]));                                                  \
    }
CONVERT(same_8, uint8_t, uint8_t, )
CONVERT(same_16, uint16_t, uint16_t, )
CONVERT(same_32, uint32_t, uint32_t, )
CONVERT(same_64, uint64_t, uint64_t, )
CONVERT(bf16_f32, uint16_t, float, det__bf16_to_f32)
CONVERT(f32_bf16, float, uint16_t, det__f32_to_bf16)
CONVERT(u8_f32, uint8_t, float, (float))
CONVERT(f64_f32, double, float, (float))
CONVERT(f32_f64, float, double, (double))
CONVERT(i64_f32, int64_t, float, (float))

static const struct {
    enum det_dtype from, to;
    convert_fn *fn;
} quick[] = {
    {DET_BF16, DET_F32, bf16_f32}, {DET_F32, DET_BF16, f32_bf16}, {DET_U8, DET_F32, u8_f32},
    {DET_F64, DET_F32, f64_f32},   {DET_F32, DET_F64, f32_f64},   {DET_I64, DET_F32, i64_f32},
};

static convert_fn *quick_one(enum det_dtype from, enum det_dtype to)
{
    if (from == to)
        switch (det_dtype_size(from)) {
        case 1: return same_8;
        case 2: return same_16;
        case 4: return same_32;
        default: return same_64;
        }
    for (size_t i = 0; i < sizeof quick / sizeof *quick; i++)
        if (quick[i].from == from && quick[i].to == to)
            return quick[i].fn;
    return NULL;
}

void cpu_convert(enum det_dtype from, const void *src, int64_t step, enum det_dtype to, void *dst,
                 int64_t n)
{
    convert_fn *fn = quick_one(from, to);
    if (fn)
        fn(src, step, dst, n);
    else
        det__convert(from, src, step, to, dst, 1, n);
}

#define TILE 8
typedef float tile_row __attribute__((vector_size(TILE * sizeof(float)), aligned(4)));
#define SHUFFLE(x, y, ...) __builtin_shufflevector(x, y, __VA_ARGS__)

/* dst [8, a] = the transpose of src [8, b]: pairs of columns, then of pairs, then of fours. */
static inline __attribute__((always_inline)) void transpose_tile(int64_t a, int64_t b,
                                                                 const float *src, float *dst)
{
    tile_row r[TILE], t[TILE];
    for (int i = 0; i < TILE; i++)
        memcpy(&r[i], src + i * b, sizeof r[i]);
    for (int i = 0; i < TILE; i += 2) {
        t[i] = SHUFFLE(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        t[i + 1] = SHUFFLE(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < TILE; i += 4)
        for (int j = 0; j < 2; j++) {
            r[i + 2 * j] = SHUFFLE(t[i + j], t[i + j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
            r[i + 2 * j + 1] = SHUFFLE(t[i + j], t[i + j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int i = 0; i < TILE / 2; i++) {
        t[i] = SHUFFLE(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        t[i + 4] = SHUFFLE(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (int i = 0; i < TILE; i++)
        memcpy(dst + i * a, &t[i], sizeof t[i]);
}

/* dst [b, a] from src [a, b]. */
CPU_CLONES static void transpose_f32(int64_t a, int64_t b, const float *restrict src,
                                     float *restrict dst)
{
    int64_t whole_a = a / TILE * TILE, whole_b = b / TILE * TILE;
    for (int64_t i = 0; i < whole_a; i += TILE)
        for (int64_t j = 0; j < whole_b; j += TILE)
            transpose_tile(a, b, src + i * b + j, dst + j * a + i);
    for (int64_t j = 0; j < b; j++)
        for (int64_t i = j < whole_b ? whole_a : 0; i < a; i++)
            dst[j * a + i] = src[i * b + j];
}

/* One image at a time from one order to the other. */
static void reorder_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    const int64_t *d = c->in[0]->dims;
    int64_t plane = d[2] * d[3], image = d[1] * plane;
    bool to_plain = c->out[0]->layout == DET_LAYOUT_PLAIN;
    for (int64_t n = from; n < to; n++)
        transpose_f32(to_plain ? plane : d[1], to_plain ? d[1] : plane, in_f32(c, 0) + n * image,
                      out_f32(c, 0) + n * image);
}

struct copy {
    const struct det_call *c;
    struct det__walk w;
};

static void copy_row(void *arg, int64_t n, const int64_t *at)
{
    const struct copy *j = arg;
    const struct det_tensor *x = j->c->in[0], *y = j->c->out[0];
    const char *src = x->data + at[1] * (int64_t)det_dtype_size(x->dtype);
    char *dst = y->data + at[0] * (int64_t)det_dtype_size(y->dtype);
    if (det__walk_step(&j->w, 0) == 1)
        cpu_convert(x->dtype, src, det__walk_step(&j->w, 1), y->dtype, dst, n);
    else
        det__convert(x->dtype, src, det__walk_step(&j->w, 1), y->dtype, dst,
                     det__walk_step(&j->w, 0), n);
}

static void copy_part(const void *arg, int64_t from, int64_t to)
{
    struct copy j = *(const struct copy *)arg;
    det__walk_range(&j.w, from, to, copy_row, &j);
}

int cpu_copy(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    const struct det_tensor *x = c->in[0], *y = c->out[0];
    if (x->layout != y->layout && x->dtype == DET_F32 && y->dtype == DET_F32 &&
        x->layout != DET_LAYOUT_STRIDED && y->layout != DET_LAYOUT_STRIDED) {
        cpu_parallel(cpu_device(s)->threads, x->dims[0], 4, reorder_range, c);
        return 0;
    }
    struct copy j = {.c = c};
    det__walk_init(&j.w, 2, (const struct det_tensor *[]){y, x});
    cpu_parallel(cpu_device(s)->threads, j.w.numel, CPU_GRAIN, copy_part, &j);
    return 0;
}

struct bytes {
    char *dst;
    const char *src;
};

static void copy_bytes(const void *arg, int64_t from, int64_t to)
{
    const struct bytes *b = arg;
    memcpy(b->dst + from, b->src + from, (size_t)(to - from));
}

int cpu_copy_bytes(struct det_stream *s, void *dst, const void *src, size_t bytes,
                   enum det_copy_kind kind, struct det_err *err)
{
    (void)kind, (void)err;
    if (dst != src)
        cpu_parallel(cpu_device(s)->threads, (int64_t)bytes, 1 << 20, copy_bytes,
                     &(const struct bytes){dst, src});
    return 0;
}
