/* Kernels that draw. */
#include "cuda_random.cuh"

static struct cuda_stream_of_draws draws_of(const struct det_call *c)
{
    return {c->a.seed, c->a.call};
}

template <typename T>
static int uniform(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_stream_of_draws d = draws_of(c);
    T *y = out_real<T>(c, 0), lo = (T)c->a.lo, span = (T)(c->a.hi - c->a.lo);
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) { y[i] = lo + span * cuda_draw(d, (uint64_t)i); }, err);
}
CUDA_REAL(uniform)

template <typename T>
static int normal(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_stream_of_draws d = draws_of(c);
    T *y = out_real<T>(c, 0);
    double scale = c->a.scale, offset = c->a.offset;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            uint64_t pair = (uint64_t)i & ~(uint64_t)1;
            double r = sqrt(-2 * log(1 - (double)cuda_draw(d, pair)));
            double angle = 6.283185307179586 * (double)cuda_draw(d, pair + 1);
            y[i] = (T)(offset + scale * r * (i % 2 ? sin(angle) : cos(angle)));
        },
        err);
}
CUDA_REAL(normal)

template <typename T>
static int dropout(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_stream_of_draws d = draws_of(c);
    const T *x = in_real<T>(c, 0);
    T *y = out_real<T>(c, 0), scale = (T)c->a.scale;
    float p = (float)c->a.p; /* so that every dtype drops the same */
    uint8_t *mask = (uint8_t *)c->out[1]->data;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) {
            mask[i] = cuda_draw(d, (uint64_t)i) >= p;
            y[i] = mask[i] ? x[i] * scale : 0;
        },
        err);
}
CUDA_REAL(dropout)

template <typename T>
static int dropout_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const T *dy = in_real<T>(c, 0);
    const uint8_t *mask = (const uint8_t *)c->in[1]->data;
    T *dx = out_real<T>(c, 0), scale = (T)c->a.scale;
    return cuda_each(
        s, c, (int64_t)c->out[0]->numel,
        DEVICE(int64_t i) { dx[i] = mask[i] ? dy[i] * scale : 0; }, err);
}
CUDA_REAL(dropout_bwd)
