/* Element-wise kernels over flat vectors, on all threads. */
#include "cpu.h"

#include "ref.h"

/* Below this many elements a second thread costs more than it gives. */
#define GRAIN 16384

static int over_elements(struct det_stream *s, const struct det_call *c, cpu_range_fn *fn)
{
    cpu_parallel(cpu_device(s)->threads, (int64_t)c->out[0]->numel, GRAIN, fn, c);
    return 0;
}

/* One image at a time from one order to the other, in tiles that stay in the cache. */
#define TILE 16
static void transpose_f32(int64_t a, int64_t b, const float *restrict src, float *restrict dst)
{
    for (int64_t i0 = 0; i0 < a; i0 += TILE)
        for (int64_t j0 = 0; j0 < b; j0 += TILE)
            for (int64_t j = j0; j < b && j < j0 + TILE; j++)
                for (int64_t i = i0; i < a && i < i0 + TILE; i++)
                    dst[j * a + i] = src[i * b + j];
}

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

int cpu_copy(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const struct det_tensor *x = c->in[0], *y = c->out[0];
    if (x->layout == y->layout || x->dtype != DET_F32 || y->dtype != DET_F32)
        return ref_copy(s, c, err);
    cpu_parallel(cpu_device(s)->threads, x->dims[0], 4, reorder_range, c);
    return 0;
}

/* Defines cpu_<name>() as a loop whose body sets y[i] from a[i] and b[i] (in 0 and 1). */
#define BINARY(name, expression)                                                                   \
    CPU_CLONES static void name##_range(const void *arg, int64_t from, int64_t to)                 \
    {                                                                                              \
        const struct det_call *c = arg;                                                            \
        const float *a = in_f32(c, 0), *b = in_f32(c, 1);                                          \
        float *y = out_f32(c, 0);                                                                  \
        CPU_IN_PLACE                                                                               \
        for (int64_t i = from; i < to; i++)                                                        \
            y[i] = (expression);                                                                   \
    }                                                                                              \
    int cpu_##name(struct det_stream *s, const struct det_call *c, struct det_err *err)            \
    {                                                                                              \
        (void)err;                                                                                 \
        return over_elements(s, c, name##_range);                                                  \
    }

BINARY(add, a[i] + b[i])
BINARY(mul, a[i] * b[i])
BINARY(relu_bwd, b[i] > 0 ? a[i] : 0)

CPU_CLONES static void affine_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    const float *x = in_f32(c, 0);
    float *y = out_f32(c, 0), scale = (float)c->a.scale, offset = (float)c->a.offset;
    CPU_IN_PLACE
    for (int64_t i = from; i < to; i++)
        y[i] = scale * x[i] + offset;
}

int cpu_affine(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    return over_elements(s, c, affine_range);
}

CPU_CLONES static void relu_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    const float *x = in_f32(c, 0);
    float *y = out_f32(c, 0);
    CPU_IN_PLACE
    for (int64_t i = from; i < to; i++)
        y[i] = x[i] < 0 ? 0 : x[i];
}

int cpu_relu(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    return over_elements(s, c, relu_range);
}
