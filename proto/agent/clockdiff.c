#include "clockdiff.h"

#define TENTH_US 100000

struct clockdiff clockdiff_of(int64_t sent_us, int64_t got_us, int64_t answered_us,
                              int64_t heard_us)
{
    int64_t a = sent_us - got_us, b = heard_us - answered_us;
    /* A clock that was set meanwhile has them cross. */
    return (struct clockdiff){a < b ? a : b, a < b ? b : a};
}

bool clockdiff_is_apart(const struct clockdiff *d, bool was)
{
    if (d->least_us > CLOCKDIFF_APART_US || d->most_us < -CLOCKDIFF_APART_US)
        return true;
    if (d->least_us >= -CLOCKDIFF_APART_US && d->most_us <= CLOCKDIFF_APART_US)
        return false;
    return was;
}

double clockdiff_s(const struct clockdiff *d)
{
    int64_t middle_us = d->least_us + (d->most_us - d->least_us) / 2;
    int64_t half = middle_us < 0 ? -TENTH_US / 2 : TENTH_US / 2;
    return (double)((middle_us + half) / TENTH_US) / 10;
}
