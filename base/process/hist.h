/* A histogram of durations with fixed bounds from 100 us to 1 hour, for /metrics. */
#ifndef BASE_HIST_H
#define BASE_HIST_H

#include <stdint.h>

#define HIST_BOUNDS 20
extern const int64_t hist_bounds_us[HIST_BOUNDS]; /* ascending */

struct hist {
    uint64_t n[HIST_BOUNDS + 1]; /* n[i]: above bound i-1, up to bound i; the last: above all */
    uint64_t count;
    double sum_s;
};
void hist_add(struct hist *h, int64_t us); /* negative counts as 0 */

#endif
