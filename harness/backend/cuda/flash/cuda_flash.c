/* From a call to what the tiled kernels are told. */
#include "cuda_flash.h"

#include "cuda_flash_call.h"

#define LOG2E 1.4426950408889634

/* Rows that are so near, too, that 32 bits reach a few of them. */
static bool is_aligned(const struct cuda_flash_rows *r, int64_t piece)
{
    return (uintptr_t)r->p % 16 == 0 && r->batch % piece == 0 && r->head % piece == 0 &&
           r->row % piece == 0 && r->row < 1 << 24;
}

/* Rows of q, k or v (which 0, 1, 2), or of their gradients. */
static struct cuda_flash_rows rows_in(const struct cuda_flash *f, const struct det_tensor *t,
                                      int64_t which, bool packed)
{
    int64_t rows = which == 0 ? f->time : f->keys, line = f->heads * f->width;
    if (!t)
        return (struct cuda_flash_rows){0};
    if (!packed)
        return (struct cuda_flash_rows){t->data, f->heads * rows * f->width, rows * f->width,
                                        f->width};
    char *p = (char *)t->data + which * line * (int64_t)det_dtype_size(t->dtype);
    return (struct cuda_flash_rows){p, rows * 3 * line, f->width, 3 * line};
}

/* Rows of y and its gradient. */
static struct cuda_flash_rows rows_out(const struct cuda_flash *f, const struct det_tensor *t,
                                       bool packed)
{
    int64_t line = f->heads * f->width;
    if (!t || !packed)
        return rows_in(f, t, 0, false);
    return (struct cuda_flash_rows){t->data, f->time * line, f->width, line};
}

static void place_rows(struct cuda_flash *f, const struct det_call *c,
                       const struct cuda_flash_operands *o)
{
    bool packed = !o->k;
    f->q = rows_in(f, o->q, 0, packed);
    f->k = rows_in(f, packed ? o->q : o->k, 1, packed);
    f->v = rows_in(f, packed ? o->q : o->v, 2, packed);
    f->y = rows_out(f, o->y, packed);
    f->dy = rows_out(f, o->dy, packed);
    if (o->backward) {
        f->dq = rows_in(f, c->out[0], 0, packed);
        f->dk = rows_in(f, c->out[packed ? 0 : 1], 1, packed);
        f->dv = rows_in(f, c->out[packed ? 0 : 2], 2, packed);
    }
    const struct cuda_flash_rows *all[] = {&f->q,  &f->k,  &f->v,  &f->y,
                                           &f->dy, &f->dq, &f->dk, &f->dv};
    int64_t piece = 16 / (int64_t)det_dtype_size(o->q->dtype);
    f->aligned = f->width % piece == 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        f->aligned = f->aligned && is_aligned(all[i], piece);
}

static void flash_of(const struct det_call *c, const struct cuda_flash_operands *o,
                     struct cuda_flash *f)
{
    const struct det_tensor *q = o->q, *m = o->mask;
    *f = (struct cuda_flash){
        .batch = q->dims[0],
        .heads = q->dims[o->k ? 1 : 3],
        .time = (int)q->dims[o->k ? 2 : 1],
        .keys = (int)(o->k ? o->k->dims[2] : q->dims[1]),
        .width = (int)q->dims[o->k ? 3 : 4],
        .causal = c->a.causal,
        .scale = (float)c->a.scale,
        .scale2 = (float)(c->a.scale * LOG2E),
        .p = (float)c->a.p, /* so that every dtype drops the same */
        .kept = (float)(1 / (1 - c->a.p)),
        .left = (float)(1 - c->a.p),
        .seed = c->a.seed,
        .call = c->a.call,
        .lse = (float *)(void *)o->lse->data,
    };
    if (m) {
        f->mask = m->data;
        f->mask_h = m->dims[1] > 1 ? 1 : 0;
        f->mask_b = m->dims[0] > 1 ? m->dims[1] : 0;
    }
    place_rows(f, c, o);
}

int cuda_flash_forward(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_flash_operands o = cuda_flash_operands_of(c);
    struct cuda_flash f;
    flash_of(c, &o, &f);
    if (o.q->dtype == DET_BF16)
        return cuda_flash_bf16(s, c, &f, err);
    if (o.q->dtype == DET_F16)
        return cuda_flash_f16(s, c, &f, err);
    return cuda_flash_f32(s, c, &f, err);
}

int cuda_flash_backward(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_flash_operands o = cuda_flash_operands_of(c);
    struct cuda_flash f;
    void *work = NULL;
    flash_of(c, &o, &f);
    size_t rows = (size_t)f.batch * (size_t)f.heads * (size_t)f.time;
    int rc = cuda_workspace(s->device, 2 * rows * sizeof *f.sums, &work, err);
    if (rc < 0)
        return rc;
    f.sums = work;
    if (o.q->dtype == DET_BF16)
        return cuda_flash_bwd_bf16(s, c, &f, err);
    if (o.q->dtype == DET_F16)
        return cuda_flash_bwd_f16(s, c, &f, err);
    return cuda_flash_bwd_f32(s, c, &f, err);
}
