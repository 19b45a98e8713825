#include "cuda_flash_call.h"

struct cuda_flash_operands cuda_flash_operands_of(const struct det_call *c)
{
    const struct det_tensor *const *in = c->in;
    if (c->kernel == DET_KERNEL_ATTENTION_BWD)
        return (struct cuda_flash_operands){true, in[1], in[2], in[3], in[4], in[5], in[6], in[0]};
    return (struct cuda_flash_operands){false, in[0],     in[1],     in[2],
                                        in[3], c->out[1], c->out[0], NULL};
}

/* All but lse, which is of f32. */
static bool is_of_one_dtype(const struct det_call *c, const struct cuda_flash_operands *o)
{
    const struct det_tensor *others[] = {o->k, o->v, o->mask, o->y, o->dy};
    bool ok = o->q->dtype != DET_F64 && o->lse->dtype == DET_F32;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        ok = ok && (!others[i] || others[i]->dtype == o->q->dtype);
    for (int i = 0; i < 3; i++)
        ok = ok && (!c->out[i] || c->out[i] == o->lse || c->out[i]->dtype == o->q->dtype);
    return ok;
}

bool cuda_flash_takes(const struct det_call *c)
{
    struct cuda_flash_operands o = cuda_flash_operands_of(c);
    int64_t time = o.q->dims[o.k ? 2 : 1], keys = o.k ? o.k->dims[2] : time;
    int64_t width = o.q->dims[o.k ? 3 : 4];
    return o.y && is_of_one_dtype(c, &o) && o.q->numel > 0 && keys > 0 &&
           width <= CUDA_FLASH_WIDTH && time < 1 << 30 && keys < 1 << 30;
}
