/* Kernels that draw: a thread takes the four draws of a block, or of two. */
#include "cuda_random.cuh"
#include "cuda_walk.cuh"

static struct cuda_stream_of_draws draws_of(const struct det_call *c)
{
    return {c->a.seed, c->a.call};
}

/* f(i, draws) for each block of four elements, from i on. */
template <typename T, typename F>
static int fill_fours(struct det_stream *s, const struct det_call *c, F f, struct det_err *err)
{
    struct cuda_stream_of_draws d = draws_of(c);
    T *y = out_real<T>(c, 0);
    int64_t n = (int64_t)c->out[0]->numel;
    return cuda_each(
        s, c, (n + 3) / 4,
        DEVICE(int64_t i) {
            float u[4];
            T v[4];
            cuda_draw_block(d, (uint64_t)i, u);
            f(u, v);
#pragma unroll
            for (int j = 0; j < 4; j++)
                if (4 * i + j < n)
                    y[4 * i + j] = v[j];
        },
        err);
}

template <typename T>
static int uniform(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    T lo = (T)c->a.lo, span = (T)(c->a.hi - c->a.lo);
    return fill_fours<T>(
        s, c,
        DEVICE(const float(&u)[4], T(&v)[4]) {
#pragma unroll
            for (int j = 0; j < 4; j++)
                v[j] = lo + span * u[j];
        },
        err);
}
CUDA_REAL(uniform)

/* Of the angle 2 pi u. */
__device__ static void sine_and_cosine(double u, double *sine, double *cosine)
{
#ifdef __CUDA_ARCH__
    sincospi(2 * u, sine, cosine);
#else
    *sine = sin(6.283185307179586 * u);
    *cosine = cos(6.283185307179586 * u);
#endif
}

/* In double, f32 too: the plain C and the CPU do so, and a seed gives the same weights everywhere
 * but for a last bit. It is not what a step waits for: by reckoning 50 instructions of f64 an
 * element, of which an H100 does 17e12 a second, make 1.4 TB/s of f32, and only networks of noise
 * draw so in a step. */
template <typename T>
static int normal(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    double scale = c->a.scale, offset = c->a.offset;
    return fill_fours<T>(
        s, c,
        DEVICE(const float(&u)[4], T(&v)[4]) {
#pragma unroll
            for (int j = 0; j < 4; j += 2) {
                double r = sqrt(-2 * log(1 - (double)u[j])), sine, cosine;
                sine_and_cosine(u[j + 1], &sine, &cosine);
                v[j] = (T)(offset + scale * r * cosine);
                v[j + 1] = (T)(offset + scale * r * sine);
            }
        },
        err);
}
CUDA_REAL(normal)

/* Tensors of one dtype and their mask, dense, in packs: how many there are; 0 where one does not
 * begin at its 16 or 8 bytes. */
static int64_t packs_with_mask(const struct det_tensor *x, const struct det_tensor *y,
                               const void *mask)
{
    bool even = ((uintptr_t)x->data | (uintptr_t)y->data) % 16 == 0 && (uintptr_t)mask % 8 == 0;
    return even && cuda_is_narrow(x->dtype) ? (int64_t)x->numel / CUDA_PACK : 0;
}

__device__ static void drop_pack(int dtype, const void *x, void *y, int64_t at, float scale,
                                 const uint8_t (&mask)[CUDA_PACK])
{
    float v[CUDA_PACK];
    cuda_load_pack(dtype, x, at, false, v);
#pragma unroll
    for (int j = 0; j < CUDA_PACK; j++)
        v[j] = mask[j] ? v[j] * scale : 0;
    cuda_store_pack(dtype, y, at, v);
}

template <typename T>
static int dropout(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    struct cuda_stream_of_draws d = draws_of(c);
    const void *x = c->in[0]->data;
    void *y = c->out[0]->data;
    int dtype = c->in[0]->dtype;
    T scale = (T)c->a.scale;
    float p = (float)c->a.p; /* so that every dtype drops the same */
    uint8_t *mask = (uint8_t *)c->out[1]->data;
    int64_t n = (int64_t)c->out[0]->numel, packs = packs_with_mask(c->in[0], c->out[0], mask);
    return cuda_each(
        s, c, n - (CUDA_PACK - 1) * packs,
        DEVICE(int64_t i) {
            if (i < packs) {
                float u[2][4];
                uint8_t m[CUDA_PACK];
                cuda_draw_block(d, 2 * (uint64_t)i, u[0]);
                cuda_draw_block(d, 2 * (uint64_t)i + 1, u[1]);
#pragma unroll
                for (int j = 0; j < CUDA_PACK; j++)
                    m[j] = u[j / 4][j % 4] >= p;
                uint64_t eight;
                memcpy(&eight, m, sizeof eight);
                ((uint64_t *)mask)[i] = eight;
                drop_pack(dtype, x, y, i * CUDA_PACK, (float)scale, m);
                return;
            }
            int64_t at = i + (CUDA_PACK - 1) * packs;
            mask[at] = cuda_draw(d, (uint64_t)at) >= p;
            cuda_store(dtype, y, at, mask[at] ? cuda_load<T>(dtype, x, at) * scale : 0);
        },
        err);
}
CUDA_REAL(dropout)

template <typename T>
static int dropout_bwd(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    const void *dy = c->in[0]->data;
    void *dx = c->out[0]->data;
    int dtype = c->in[0]->dtype;
    T scale = (T)c->a.scale;
    const uint8_t *mask = (const uint8_t *)c->in[1]->data;
    int64_t n = (int64_t)c->out[0]->numel, packs = packs_with_mask(c->in[0], c->out[0], mask);
    return cuda_each(
        s, c, n - (CUDA_PACK - 1) * packs,
        DEVICE(int64_t i) {
            if (i < packs) {
                uint8_t m[CUDA_PACK];
                uint64_t eight = ((const uint64_t *)mask)[i];
                memcpy(m, &eight, sizeof eight);
                drop_pack(dtype, dy, dx, i * CUDA_PACK, (float)scale, m);
                return;
            }
            int64_t at = i + (CUDA_PACK - 1) * packs;
            cuda_store(dtype, dx, at, mask[at] ? cuda_load<T>(dtype, dy, at) * scale : 0);
        },
        err);
}
CUDA_REAL(dropout_bwd)
