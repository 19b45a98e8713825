/* The element-wise kernels: which function of elem.h runs over the rows. */
#include "cpu_rows.h"

#include <string.h>

#include "ref.h"
#include "walk.h"
#include "dtype.h"

int cpu_unary(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cpu_row_fns fns = {cpu_elem_f32.unary[c->a.fn], cpu_elem_f64.unary[c->a.fn], NULL};
    (void)err;
    return cpu_rows(s, c, 1, &fns);
}

int cpu_unary_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cpu_row_fns fns = {cpu_elem_f32.unary_bwd[c->a.fn], cpu_elem_f64.unary_bwd[c->a.fn],
                              NULL};
    (void)err;
    return cpu_rows(s, c, 3, &fns);
}

int cpu_binary(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cpu_row_fns fns = {cpu_elem_f32.binary[c->a.fn], cpu_elem_f64.binary[c->a.fn],
                              cpu_whole[c->a.fn]};
    (void)err;
    return cpu_rows(s, c, 2, &fns);
}

int cpu_binary_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    int i = 2 * c->a.fn + c->a.side;
    struct cpu_row_fns fns = {cpu_elem_f32.binary_bwd[i], cpu_elem_f64.binary_bwd[i], NULL};
    (void)err;
    return cpu_rows(s, c, 3, &fns);
}

int cpu_compare(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cpu_row_fns fns = {cpu_elem_f32.compare[c->a.fn], cpu_elem_f64.compare[c->a.fn],
                              cpu_whole_compare[c->a.fn]};
    (void)err;
    return cpu_rows(s, c, 2, &fns);
}

/* Kernels of their own that are one of the functions. */
#define AS(name, of, FN)                                                                           \
    int cpu_##name(struct det_stream *s, const struct det_call *c, struct det_err *err)            \
    {                                                                                              \
        struct det_call as = *c;                                                                   \
        as.a.fn = FN;                                                                              \
        return of(s, &as, err);                                                                    \
    }
AS(add, cpu_binary, DET_BINARY_ADD)
AS(sub, cpu_binary, DET_BINARY_SUB)
AS(mul, cpu_binary, DET_BINARY_MUL)
AS(relu, cpu_unary, DET_UNARY_RELU)
AS(relu_bwd, cpu_binary, DET_BINARY_RELU_BWD)
AS(clamp, cpu_unary, DET_UNARY_CLAMP)

int cpu_affine(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct det_call as = *c;
    as.a.fn = DET_UNARY_AFFINE;
    as.a.lo = c->a.scale;
    as.a.hi = c->a.offset;
    return cpu_unary(s, &as, err);
}

int cpu_limit(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    double norm = det__load_f64(c->in[0]->dtype, c->in[0]->data);
    double factor = c->a.hi / (norm + c->a.eps);
    const struct det_call as = {
        .kernel = DET_KERNEL_AFFINE, .in = {c->out[0]}, .out = {c->out[0]}, .a.scale = factor};
    return factor >= 1 ? 0 : cpu_affine(s, &as, err);
}

/* Which bytes, not which numbers: by the size of an element. */
struct where {
    const struct det_call *c;
    struct det__walk w;
};

#define PICK(type)                                                                                 \
    static void pick_##type(const struct where *j, int64_t n, const int64_t *at)                   \
    {                                                                                              \
        const uint8_t *cond = (const uint8_t *)j->c->in[0]->data + at[1];                          \
        const type *a = (const type *)(const void *)j->c->in[1]->data + at[2];                     \
        const type *b = (const type *)(const void *)j->c->in[2]->data + at[3];                     \
        type *y = (type *)(void *)j->c->out[0]->data + at[0];                                      \
        int64_t sc = det__walk_step(&j->w, 1), sa = det__walk_step(&j->w, 2),                      \
                sb = det__walk_step(&j->w, 3);                                                     \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = cond[i * sc] ? a[i * sa] : b[i * sb];                                           \
    }
PICK(uint8_t)
PICK(uint16_t)
PICK(uint32_t)
PICK(uint64_t)

static void where_row(void *arg, int64_t n, const int64_t *at)
{
    const struct where *j = arg;
    switch (det_dtype_size(j->c->out[0]->dtype)) {
    case 1: pick_uint8_t(j, n, at); break;
    case 2: pick_uint16_t(j, n, at); break;
    case 4: pick_uint32_t(j, n, at); break;
    default: pick_uint64_t(j, n, at);
    }
}

static void where_part(const void *arg, int64_t from, int64_t to)
{
    struct where j = *(const struct where *)arg;
    det__walk_range(&j.w, from, to, where_row, &j);
}

int cpu_where(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct where j = {.c = c};
    (void)err;
    det__walk_init(&j.w, 4, (const struct det_tensor *[]){c->out[0], c->in[0], c->in[1], c->in[2]});
    cpu_parallel(cpu_device(s)->threads, j.w.numel, CPU_GRAIN, where_part, &j);
    return 0;
}
