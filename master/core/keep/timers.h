/* Deadlines in an intrusive binary heap: arming and disarming O(log n), the earliest O(1). */
#ifndef CORE_TIMERS_H
#define CORE_TIMERS_H

#include "vec.h"
#include <stdbool.h>
#include <stdint.h>

enum timer_kind {
    TIMER_ALLOC,
    TIMER_EXP,
    TIMER_LEASE,
    TIMER_POOL,
    TIMER_SETTLED,
    TIMER_WAITS,
    TIMER_STORE,
    TIMER_LIFTS
};
struct timer {
    int64_t at_ms;
    uint64_t turn; /* of equal times the one that was armed first comes first */
    size_t pos;    /* in the heap plus one; 0: not armed */
    enum timer_kind kind;
};
struct timers {
    VEC(struct timer *) heap;
    uint64_t turns;
};

/* Arms, moves, or (INT64_MAX) disarms t. */
void timers_set(struct timers *h, struct timer *t, int64_t at_ms);
struct timer *timers_first(const struct timers *h); /* NULL: none */

#endif
