/* Kernels that draw. */
#include "cuda_random.cuh"

static struct cuda_stream_of_draws draws_of(const struct det_call *c)
{
    return {c->a.seed, c->a.call};
}

int cuda_uniform(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_stream_of_draws d = draws_of(c);
    float *y = out_f32(c, 0), lo = (float)c->a.lo, span = (float)(c->a.hi - c->a.lo);
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) { y[i] = lo + span * cuda_draw(d, (uint64_t)i); }, err);
}

int cuda_normal(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_stream_of_draws d = draws_of(c);
    float *y = out_f32(c, 0);
    double scale = c->a.scale, offset = c->a.offset;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            uint64_t pair = (uint64_t)i & ~(uint64_t)1;
            double r = sqrt(-2 * log(1 - (double)cuda_draw(d, pair)));
            double angle = 6.283185307179586 * (double)cuda_draw(d, pair + 1);
            y[i] = (float)(offset + scale * r * (i % 2 ? sin(angle) : cos(angle)));
        },
        err);
}

int cuda_dropout(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_stream_of_draws d = draws_of(c);
    const float *x = in_f32(c, 0);
    float *y = out_f32(c, 0), p = (float)c->a.p, scale = (float)c->a.scale;
    uint8_t *mask = (uint8_t *)c->out[1]->data;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            mask[i] = cuda_draw(d, (uint64_t)i) >= p;
            y[i] = mask[i] ? x[i] * scale : 0;
        },
        err);
}

int cuda_dropout_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const float *dy = in_f32(c, 0);
    const uint8_t *mask = (const uint8_t *)c->in[1]->data;
    float *dx = out_f32(c, 0), scale = (float)c->a.scale;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) { dx[i] = mask[i] ? dy[i] * scale : 0; }, err);
}
