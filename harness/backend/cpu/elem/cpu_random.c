/*
 * Dropout. Philox4x32-10 (base/text/rng.h) is computed for LANES counters side by side, which the
 * compiler turns into vector code; the bits are those of ref_dropout().
 */
#include "cpu_real.h"

#define LANES 64
#define GRAIN 64 /* in groups of LANES * 4 elements */

struct lanes {
    uint32_t c0[LANES], c1[LANES], c2[LANES], c3[LANES];
};

/* Blocks `first` to first + LANES - 1 of the stream (key, call). */
static inline __attribute__((always_inline)) void philox_lanes(uint64_t key, uint64_t call,
                                                               uint64_t first, struct lanes *v)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int i = 0; i < LANES; i++) {
        v->c0[i] = (uint32_t)(first + (uint64_t)i);
        v->c1[i] = (uint32_t)((first + (uint64_t)i) >> 32);
        v->c2[i] = (uint32_t)call;
        v->c3[i] = (uint32_t)(call >> 32);
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < LANES; i++) {
            uint64_t p0 = (uint64_t)UINT32_C(0xd2511f53) * v->c0[i];
            uint64_t p1 = (uint64_t)UINT32_C(0xcd9e8d57) * v->c2[i];
            v->c0[i] = (uint32_t)(p1 >> 32) ^ v->c1[i] ^ k0;
            v->c2[i] = (uint32_t)(p0 >> 32) ^ v->c3[i] ^ k1;
            v->c1[i] = (uint32_t)p1;
            v->c3[i] = (uint32_t)p0;
        }
        k0 += UINT32_C(0x9e3779b9);
        k1 += UINT32_C(0xbb67ae85);
    }
}

/* The words of the blocks in the order of the elements. */
static inline __attribute__((always_inline)) void interleave_blocks(const struct lanes *v,
                                                                    uint32_t *restrict draw)
{
    for (int i = 0; i < LANES; i++) {
        draw[4 * i] = v->c0[i];
        draw[4 * i + 1] = v->c1[i];
        draw[4 * i + 2] = v->c2[i];
        draw[4 * i + 3] = v->c3[i];
    }
}

/* The least draw >> 8 with (draw >> 8) * 2^-24 >= p in f32. */
static uint32_t draw_threshold(float p)
{
    float exact = p * 0x1p24f;
    uint32_t least = (uint32_t)exact;
    return (float)least < exact ? least + 1 : least;
}

CPU_CLONES static void dropout_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    int64_t n = (int64_t)c->out[0]->numel;
    uint32_t least = draw_threshold((float)c->a.p);
    real scale = (real)c->a.scale;
    for (int64_t group = from; group < to; group++) {
        struct lanes v;
        uint32_t draw[LANES * 4];
        int64_t base = group * LANES * 4, left = n - base < LANES * 4 ? n - base : LANES * 4;
        const real *restrict x = in_real(c, 0) + base;
        real *restrict y = out_real(c, 0) + base;
        unsigned char *restrict mask = out_u8(c, 1) + base;
        philox_lanes(c->a.seed, c->a.call, (uint64_t)group * LANES, &v);
        interleave_blocks(&v, draw);
        for (int64_t i = 0; i < left; i++) {
            mask[i] = draw[i] >> 8 >= least;
            y[i] = draw[i] >> 8 >= least ? x[i] * scale : 0;
        }
    }
}

int CPU(dropout)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    int64_t groups = ((int64_t)c->out[0]->numel + LANES * 4 - 1) / (LANES * 4);
    cpu_parallel(cpu_device(s)->threads, groups, GRAIN, dropout_range, c);
    return 0;
}

CPU_CLONES static void dropout_bwd_range(const void *arg, int64_t from, int64_t to)
{
    const struct det_call *c = arg;
    const real *dy = in_real(c, 0);
    const unsigned char *restrict mask = (const unsigned char *)c->in[1]->data;
    real *dx = out_real(c, 0), scale = (real)c->a.scale;
    CPU_IN_PLACE
    for (int64_t i = from; i < to; i++)
        dx[i] = mask[i] ? dy[i] * scale : 0;
}

int CPU(dropout_bwd)(struct det_stream *s, const struct det_call *c, struct det_err *err)
{
    (void)err;
    cpu_parallel(cpu_device(s)->threads, (int64_t)c->out[0]->numel, GRAIN * LANES * 4,
                 dropout_bwd_range, c);
    return 0;
}
