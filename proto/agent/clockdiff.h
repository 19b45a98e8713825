/*
 * How far another host's clock is from ours. One exchange bounds it from both sides: what was sent
 * cannot have come before, and what was heard cannot have been answered after. A slow network, or a
 * process that stood still, makes the bounds wide and never wrong. (The bounds are those of NTP,
 * RFC 5905; it takes their middle for the difference.)
 */
#ifndef CLOCKDIFF_H
#define CLOCKDIFF_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCKDIFF_APART_US 2000000 /* from here on times of one run, told by two hosts, mislead */

/* How far a clock is ahead of the other (negative: behind), at least and at most. */
struct clockdiff {
    int64_t least_us, most_us;
};
/* Wall clocks: sent and heard here; got and answered there. Each 0 to INT64_MAX / 2. */
struct clockdiff clockdiff_of(int64_t sent_us, int64_t got_us, int64_t answered_us,
                              int64_t heard_us);
/* Whether they differ by more than CLOCKDIFF_APART_US; where the bounds do not tell, as before. */
bool clockdiff_is_apart(const struct clockdiff *d, bool was);
/* The middle of the bounds, rounded to tenths of a second; negative: behind. */
double clockdiff_s(const struct clockdiff *d);

#endif
