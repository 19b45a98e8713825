#include "periods.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { DAY_S = 86400, MONTHS = 12, YEAR_MIN = 1970, YEAR_MAX = 9998 };

static int64_t day_of(int year, int month, int day)
{
    struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    return (int64_t)timegm(&tm) / DAY_S;
}

static void day_text(int64_t day, char out[PERIOD_TEXT_MAX])
{
    struct tm tm;
    time_t t = (time_t)(day * DAY_S);
    gmtime_r(&t, &tm);
    strftime(out, PERIOD_TEXT_MAX, "%Y-%m-%d", &tm);
}

static void text_of(bool by_month, int64_t at, char out[PERIOD_TEXT_MAX])
{
    if (by_month)
        snprintf(out, PERIOD_TEXT_MAX, "%04d-%02d", (int)(at / MONTHS) % 10000,
                 (int)(at % MONTHS) + 1);
    else
        day_text(at, out);
}

/* What it is read as is written the same way: so no 31st of February, and nothing after it. */
static int read_one(bool by_month, const char *text, const char *name, int64_t *ret,
                    struct det_err *err)
{
    int year = 0, month = 0, day = 1;
    char again[PERIOD_TEXT_MAX] = "";
    int n = text ? sscanf(text, by_month ? "%4d-%2d" : "%4d-%2d-%2d", &year, &month, &day) : 0;
    if (n == (by_month ? 2 : 3) && year >= YEAR_MIN && year <= YEAR_MAX && month >= 1 &&
        month <= MONTHS) {
        *ret = by_month ? (int64_t)year * MONTHS + month - 1 : day_of(year, month, day);
        text_of(by_month, *ret, again);
    }
    if (text && *text && strcmp(text, again) == 0)
        return 0;
    return det_fail(err, DET_EINVAL, "%s: \"%.40s\" is not a %s", name, text ? text : "",
                    by_month ? "month, as 2026-01" : "day, as 2026-01-31");
}

int periods_parse(bool by_month, const char *start, const char *end, struct periods *ret,
                  struct det_err *err)
{
    int64_t last = 0;
    *ret = (struct periods){.by_month = by_month};
    int rc = read_one(by_month, start, "startDate", &ret->first, err);
    if (rc == 0)
        rc = read_one(by_month, end, "endDate", &last, err);
    if (rc < 0)
        return rc;
    if (last < ret->first)
        return det_fail(err, DET_EINVAL, "endDate: %s is before startDate, %s", end, start);
    if (last - ret->first >= PERIODS_MAX)
        return det_fail(err, DET_EINVAL, "endDate: at most %d %s from startDate on", PERIODS_MAX,
                        by_month ? "months" : "days");
    ret->n = (size_t)(last - ret->first) + 1;
    return 0;
}

void period_text(const struct periods *p, size_t i, char out[PERIOD_TEXT_MAX])
{
    text_of(p->by_month, p->first + (int64_t)i, out);
}

void period_first_day(const struct periods *p, size_t i, char out[PERIOD_TEXT_MAX])
{
    int64_t at = p->first + (int64_t)i;
    if (p->by_month)
        at = day_of((int)(at / MONTHS), (int)(at % MONTHS) + 1, 1);
    day_text(at, out);
}
