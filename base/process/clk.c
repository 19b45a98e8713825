#include "clk.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>

static int64_t read_us(clockid_t id)
{
    struct timespec ts;
    clock_gettime(id, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

int64_t clk_mono_ms(void)
{
    return read_us(CLOCK_MONOTONIC) / 1000;
}

int64_t clk_mono_us(void)
{
    return read_us(CLOCK_MONOTONIC);
}

int64_t clk_wall_us(void)
{
    return read_us(CLOCK_REALTIME);
}

/* v in `width` digits and what follows them, at *at. Charts have hundreds of times: no printf. */
static void put_digits(char **at, int v, int width, char after)
{
    for (int i = width - 1; i >= 0; i--, v /= 10)
        (*at)[i] = (char)('0' + v % 10);
    (*at)[width] = after;
    *at += width + 1;
}

void clk_format(int64_t wall_us, char out[CLK_RFC3339_MAX])
{
    int64_t us = wall_us % 1000000, s = wall_us / 1000000;
    if (us < 0) {
        us += 1000000;
        s--;
    }
    int64_t first = -62167219200, last = 253402300799; /* years 0 to 9999 */
    s = s < first ? first : s > last ? last : s;
    struct tm tm;
    gmtime_r(&(time_t){s}, &tm);
    char *at = out;
    put_digits(&at, tm.tm_year + 1900, 4, '-');
    put_digits(&at, tm.tm_mon + 1, 2, '-');
    put_digits(&at, tm.tm_mday, 2, 'T');
    put_digits(&at, tm.tm_hour, 2, ':');
    put_digits(&at, tm.tm_min, 2, ':');
    put_digits(&at, tm.tm_sec, 2, us ? '.' : 'Z');
    if (us)
        put_digits(&at, (int)us, 6, 'Z');
    *at = 0;
}

/* Exactly `width` digits at *p, which moves past them; -1 if there are fewer. */
static int take_digits(const char **p, int width)
{
    int v = 0;
    for (int i = 0; i < width; i++, (*p)++) {
        if (**p < '0' || **p > '9')
            return -1;
        v = v * 10 + (**p - '0');
    }
    return v;
}

static bool skip_one_of(const char **p, const char *set)
{
    for (; *set; set++)
        if (**p == *set) {
            (*p)++;
            return true;
        }
    return false;
}

/* ".311328" as microseconds; digits past the sixth are dropped. -1 if there is no digit. */
static int fraction_us(const char **p)
{
    int us = 0, scale = 100000, n = 0;
    for (; **p >= '0' && **p <= '9'; (*p)++, n++, scale /= 10)
        us += (**p - '0') * scale;
    return n ? us : -1;
}

/* "Z", "+02:00"; returns false unless it ends the text. */
static bool zone_s(const char **p, int *ret_s)
{
    *ret_s = 0;
    if (skip_one_of(p, "Zz"))
        return **p == '\0';
    int sign = **p == '-' ? -1 : 1;
    if (!skip_one_of(p, "+-"))
        return false;
    int h = take_digits(p, 2);
    if (h < 0 || h > 23 || !skip_one_of(p, ":"))
        return false;
    int m = take_digits(p, 2);
    *ret_s = sign * (h * 3600 + m * 60);
    return m >= 0 && m < 60 && **p == '\0';
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    return days[month - 1] + (month == 2 && leap);
}

static bool parse_date(const char **p, struct tm *tm)
{
    int y = take_digits(p, 4);
    bool ok = y >= 0 && skip_one_of(p, "-");
    int mon = ok ? take_digits(p, 2) : -1;
    ok = mon >= 1 && mon <= 12 && skip_one_of(p, "-");
    int d = ok ? take_digits(p, 2) : -1;
    if (!ok || d < 1 || d > days_in(y, mon))
        return false;
    tm->tm_year = y - 1900, tm->tm_mon = mon - 1, tm->tm_mday = d;
    return true;
}

static bool parse_time(const char **p, struct tm *tm)
{
    tm->tm_hour = take_digits(p, 2);
    if (tm->tm_hour < 0 || tm->tm_hour > 23 || !skip_one_of(p, ":"))
        return false;
    tm->tm_min = take_digits(p, 2);
    if (tm->tm_min < 0 || tm->tm_min > 59 || !skip_one_of(p, ":"))
        return false;
    tm->tm_sec = take_digits(p, 2);
    return tm->tm_sec >= 0 && tm->tm_sec <= 60;
}

int clk_parse(const char *rfc3339, int64_t *ret_wall_us, struct det_err *err)
{
    const char *p = rfc3339;
    struct tm tm = {0};
    int us = 0, offset_s = 0;
    bool ok = parse_date(&p, &tm) && skip_one_of(&p, "Tt ") && parse_time(&p, &tm);
    if (ok && skip_one_of(&p, "."))
        ok = (us = fraction_us(&p)) >= 0;
    if (!ok || !zone_s(&p, &offset_s))
        return det_fail(err, DET_EINVAL,
                        "\"%.40s\" is not a time; expected e.g. 2023-07-06T23:56:54.311328Z",
                        rfc3339);
    *ret_wall_us = ((int64_t)timegm(&tm) - offset_s) * 1000000 + us;
    return 0;
}
