/* Days or months of UTC in a row, as reports of slot use have them. Pure. */
#ifndef PROTO_PERIODS_H
#define PROTO_PERIODS_H

#include "det/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PERIODS_MAX = 3660, PERIOD_TEXT_MAX = 16 };

struct periods {
    bool by_month;
    int64_t first; /* days since 1970, or months since the year 0 */
    size_t n;
};

/* From the first to the last, both "2026-01-31", or by month "2026-01". DET_EINVAL names startDate
 * or endDate. */
DET_MUST int periods_parse(bool by_month, const char *start, const char *end, struct periods *ret,
                           struct det_err *err);
/* Period i as it is written above. */
void period_text(const struct periods *p, size_t i, char out[PERIOD_TEXT_MAX]);
/* Its first day, "2026-01-01"; of i = n the day after all. */
void period_first_day(const struct periods *p, size_t i, char out[PERIOD_TEXT_MAX]);

#endif
