/* Random numbers of records: Philox with the trial's seed as key and (epoch, record, count) as
 * counter. */
#include "det/data.h"
#include "rng.h"

#define DRAWS_KEY UINT64_C(0x7265636f7264) /* apart from the engine's draws under the same seed */

/* 53 bits in [0, 1). */
static double draw_uniform(struct det_draws *d)
{
    uint32_t out[4];
    philox4x32(d->seed ^ DRAWS_KEY, (uint64_t)d->epoch, (uint64_t)d->record << 20 | d->count++,
               out);
    return (double)((uint64_t)out[0] << 21 ^ out[1] >> 11) * 0x1p-53;
}

double det_draw_uniform(struct det_draws *d, double from, double to)
{
    return from + (to - from) * draw_uniform(d);
}

int64_t det_draw_int(struct det_draws *d, int64_t n)
{
    return (int64_t)(draw_uniform(d) * (double)n);
}
