/* Kernels that draw: element i takes word i % 4 of the Philox block (call, i / 4). */
#include "ref_real.h"

#include <math.h>

#include "rng.h"

static float unit_of_draw(uint32_t draw)
{
    return (float)(draw >> 8) * 0x1p-24f;
}

REF_KERNEL(uniform)
{
    (void)s, (void)err;
    real *y = out_real(c, 0), lo = (real)c->a.lo, span = (real)(c->a.hi - c->a.lo);
    for (size_t i = 0; i < c->out[0]->numel; i += 4) {
        uint32_t draw[4];
        philox4x32(c->a.seed, c->a.call, i / 4, draw);
        for (size_t j = 0; j < 4 && i + j < c->out[0]->numel; j++)
            y[i + j] = lo + span * unit_of_draw(draw[j]);
    }
    return 0;
}

REF_KERNEL(dropout)
{
    (void)s, (void)err;
    const real *x = in_real(c, 0);
    real *y = out_real(c, 0), scale = (real)c->a.scale;
    float p = (float)c->a.p;
    unsigned char *mask = out_u8(c, 1);
    for (size_t i = 0; i < c->out[0]->numel; i += 4) {
        uint32_t draw[4];
        philox4x32(c->a.seed, c->a.call, i / 4, draw);
        for (size_t j = 0; j < 4 && i + j < c->out[0]->numel; j++) {
            mask[i + j] = unit_of_draw(draw[j]) >= p;
            y[i + j] = mask[i + j] ? x[i + j] * scale : 0;
        }
    }
    return 0;
}

REF_KERNEL(dropout_bwd)
{
    (void)s, (void)err;
    const real *dy = in_real(c, 0);
    const unsigned char *mask = (const unsigned char *)c->in[1]->data;
    real *dx = out_real(c, 0), scale = (real)c->a.scale;
    for (size_t i = 0; i < c->out[0]->numel; i++)
        dx[i] = mask[i] ? dy[i] * scale : 0;
    return 0;
}

REF_KERNEL(normal)
{
    (void)s, (void)err;
    real *y = out_real(c, 0);
    size_t n = c->out[0]->numel;
    for (size_t i = 0; i < n; i += 4) {
        uint32_t draw[4];
        philox4x32(c->a.seed, c->a.call, i / 4, draw);
        for (size_t j = 0; j < 4 && i + j < n; j += 2) {
            double r = sqrt(-2 * log(1 - (double)unit_of_draw(draw[j])));
            double angle = 6.283185307179586 * (double)unit_of_draw(draw[j + 1]);
            y[i + j] = (real)(c->a.offset + c->a.scale * r * cos(angle));
            if (i + j + 1 < n)
                y[i + j + 1] = (real)(c->a.offset + c->a.scale * r * sin(angle));
        }
    }
    return 0;
}
