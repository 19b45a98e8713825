#include "series.h"

#include "numtext.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

struct drawn {
    struct series_point *v;
    size_t n;
};

/* Each step is drawn once. */
static void draw_point(struct drawn *d, const struct series_point *p)
{
    if (d->n == 0 || d->v[d->n - 1].steps < p->steps)
        d->v[d->n++] = *p;
}

static void draw_item(struct drawn *d, const struct series_item *i)
{
    bool low_first = i->low.steps <= i->high.steps;
    draw_point(d, low_first ? &i->low : &i->high);
    draw_point(d, low_first ? &i->high : &i->low);
}

static struct series_item merge_items(const struct series_item *items, size_t n)
{
    struct series_item all = items[0];
    for (size_t i = 1; i < n; i++) {
        if (items[i].low.value < all.low.value)
            all.low = items[i].low;
        if (items[i].high.value > all.high.value)
            all.high = items[i].high;
    }
    return all;
}

int64_t series_share(int64_t max, int64_t n)
{
    int64_t share = SERIES_POINTS_ALL / (n > 1 ? n : 1);
    share = share > SERIES_POINTS_MIN ? share : SERIES_POINTS_MIN;
    return max < share ? max : share;
}

int64_t series_buckets(int64_t max)
{
    return max <= SERIES_POINTS_MIN ? 1 : (max - 2) / 2;
}

static size_t points_of(const struct series_item *items, size_t n)
{
    size_t points = 0;
    for (size_t i = 0; i < n; i++)
        points += items[i].low.steps == items[i].high.steps ? 1 : 2;
    return points;
}

/* In four points: the ends, and between them the extremes of all. */
static void draw_few(struct drawn *d, const struct series_item *items, size_t n)
{
    struct series_item all = merge_items(items, n);
    const struct series_item *first = &items[0], *last = &items[n - 1];
    draw_point(d, first->low.steps <= first->high.steps ? &first->low : &first->high);
    draw_item(d, &all);
    draw_point(d, last->low.steps >= last->high.steps ? &last->low : &last->high);
}

size_t series_points(const struct series_item *items, size_t n, size_t max,
                     struct series_point *ret)
{
    struct drawn d = {.v = ret};
    if (max < SERIES_POINTS_MIN)
        max = SERIES_POINTS_MIN;
    if (points_of(items, n) <= max) {
        for (size_t i = 0; i < n; i++)
            draw_item(&d, &items[i]);
        return d.n;
    }
    /* The ends are single reports as a rule; when they are not, the buckets make room. */
    size_t ends = points_of(items, 1) + points_of(items + n - 1, 1), inner = n - 2;
    if (max < ends + 2) {
        draw_few(&d, items, n);
        return d.n;
    }
    size_t buckets = (max - ends) / 2;
    draw_item(&d, &items[0]);
    for (size_t b = 0; b < buckets && inner > 0; b++) {
        size_t from = inner * b / buckets, to = inner * (b + 1) / buckets;
        if (from == to)
            continue;
        struct series_item all = merge_items(items + 1 + from, to - from);
        draw_item(&d, &all);
    }
    draw_item(&d, &items[n - 1]);
    return d.n;
}

/* "[value, steps, at]" at *at; *at is left behind it. */
static bool point_read(const char **at, struct series_point *ret)
{
    double v[3];
    char *end;
    const char *p = *at;
    for (int i = 0; i < 3; i++) {
        if (*p != (i ? ',' : '['))
            return false;
        v[i] = numtext_read(p + 1, &end);
        if (end == p + 1)
            return false;
        p = end;
    }
    if (*p != ']' || !(v[1] >= 0 && v[1] <= INT32_MAX))
        return false;
    *ret = (struct series_point){.value = v[0], .steps = (int64_t)v[1], .at = v[2]};
    *at = p + 1;
    return true;
}

/* Whether each of the parts goes on; they do behind their commas. */
static bool next_read(const char *part[3])
{
    for (int i = 0; i < 3; i++)
        if (*part[i]++ != ',')
            return false;
    return true;
}

/* The reports of a line "#steps,..;at,..;value,..". */
static size_t reports_read(const char *line, struct series_item *ret)
{
    const char *part[3] = {line + 1};
    for (int i = 1; i < 3; i++) {
        part[i] = part[i - 1] + strcspn(part[i - 1], ";\n");
        if (*part[i]++ != ';')
            return 0;
    }
    size_t n = 0;
    do {
        double v[3];
        for (int i = 0; i < 3; i++) {
            char *end;
            v[i] = numtext_read(part[i], &end);
            if (end == part[i])
                return n;
            part[i] = end;
        }
        if (!(v[0] >= 0 && v[0] <= INT32_MAX))
            return n;
        ret[n].low = (struct series_point){.steps = (int64_t)v[0], .at = v[1], .value = v[2]};
        ret[n].high = ret[n].low;
        n++;
    } while (next_read(part));
    return n;
}

size_t series_parse(const char *text, struct series_item *ret)
{
    size_t n = 0;
    for (const char *at = text; *at; at += *at == '\n') {
        struct series_item *i = &ret[n];
        if (*at == '#') {
            n += reports_read(at, i);
        } else if (point_read(&at, &i->low)) {
            i->high = i->low;
            n += *at != '[' || point_read(&at, &i->high);
        }
        at += strcspn(at, "\n");
    }
    return n;
}

size_t series_items_max(const char *text)
{
    size_t n = 0;
    for (const char *at = text; *at; at += *at == '\n') {
        n++;
        if (*at == '#')
            for (; *at && *at != ';' && *at != '\n'; at++)
                n += *at == ',';
        at += strcspn(at, "\n");
    }
    return n;
}

static bool is_within(const struct series_bounds *b, const struct series_point *p)
{
    return p->steps >= b->from && p->steps <= b->to && (b->after == 0 || p->at > b->after) &&
           (b->before == 0 || p->at <= b->before);
}

size_t series_within(const struct series_bounds *b, struct series_item *items, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct series_item x = items[i];
        bool low = is_within(b, &x.low), high = is_within(b, &x.high);
        if (low || high)
            items[kept++] = (struct series_item){low ? x.low : x.high, high ? x.high : x.low};
    }
    return kept;
}
