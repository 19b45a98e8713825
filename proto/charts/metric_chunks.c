#include "metric_chunks.h"

#include "numtext.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX  40 /* of a number whose exponent is written out */
#define BOUNDED_MAX 1e296

/* A metric in some neighbouring reports. */
struct span {
    size_t n, low, high; /* low, high: which report */
    double total;
};

struct work {
    const struct metric_point_set *v;
    size_t n;
    struct metric_chunks *to;
    const struct metric_value **value; /* of report i its metric k: i * names_n + k */
};

static double bound_number(double x)
{
    return x < -BOUNDED_MAX ? -BOUNDED_MAX : x > BOUNDED_MAX ? BOUNDED_MAX : x;
}

static bool find_names(struct metric_chunks *c, const struct metric_point_set *first)
{
    if (first->n == 0 || first->n > METRIC_CHUNK_NAMES)
        return false;
    for (c->names_n = 0; c->names_n < first->n; c->names_n++) {
        const struct metric_value *x = &first->values[c->names_n];
        c->names[c->names_n] = (struct metric_name){first->doc + x->name, x->name_len};
    }
    return true;
}

static bool is_named(const struct metric_point_set *r, size_t k, const struct metric_name *name)
{
    const struct metric_value *x = &r->values[k];
    return x->name_len == name->len && memcmp(r->doc + x->name, name->p, name->len) == 0;
}

/* Mostly it stands where the first report has it. */
static const struct metric_value *find_value(const struct metric_point_set *r, size_t guess,
                                             const struct metric_name *name)
{
    if (is_named(r, guess, name))
        return &r->values[guess];
    for (size_t k = 0; k < r->n; k++)
        if (is_named(r, k, name))
            return &r->values[k];
    return NULL;
}

static bool read_report(struct work *w, size_t i)
{
    const struct metric_chunks *c = w->to;
    const struct metric_point_set *r = &w->v[i];
    const struct metric_value **at = w->value + i * c->names_n;
    if (r->n != c->names_n || (i > 0 && r->steps <= r[-1].steps))
        return false;
    for (size_t k = 0; k < c->names_n; k++)
        if (!(at[k] = find_value(r, k, &c->names[k])))
            return false;
    return true;
}

static bool read_all(struct work *w)
{
    for (size_t i = 0; i < w->n; i++)
        if (!read_report(w, i))
            return false;
    return true;
}

static const struct metric_value *value_of(const struct work *w, size_t i, size_t k)
{
    return w->value[i * w->to->names_n + k];
}

static double number_of(const struct work *w, size_t i, size_t k)
{
    return value_of(w, i, k)->number;
}

static const char *text_of(const struct work *w, size_t i, size_t k)
{
    return w->v[i].doc + value_of(w, i, k)->text;
}

/* Metric k in the reports [from, to). */
static struct span look_at(const struct work *w, size_t k, size_t from, size_t to)
{
    struct span s = {.n = to - from, .low = from, .high = from};
    for (size_t i = from; i < to; i++) {
        double x = number_of(w, i, k);
        s.total += bound_number(x);
        if (x < number_of(w, s.low, k))
            s.low = i;
        if (x > number_of(w, s.high, k))
            s.high = i;
    }
    return s;
}

/* All of it, of the chunks' spans. Of equal lowest ones the first counts, of highest the last. */
static struct span join_spans(const struct work *w, size_t k, const struct span *s, size_t n)
{
    struct span all = {.low = s[0].low, .high = s[0].high};
    for (size_t i = 0; i < n; i++) {
        all.n += s[i].n;
        all.total += bound_number(s[i].total);
        if (number_of(w, s[i].low, k) < number_of(w, all.low, k))
            all.low = s[i].low;
        if (number_of(w, s[i].high, k) >= number_of(w, all.high, k))
            all.high = s[i].high;
    }
    return all;
}

/* ---- Text ------------------------------------------------------------------------------------ */

static void put_f64(struct buf *out, double x)
{
    char text[NUMTEXT_MAX];
    numtext(x, text);
    buf_add_str(out, text);
}

static void put_time(struct buf *out, const struct metric_point_set *r)
{
    put_f64(out, (double)r->time_us / 1e6);
}

static void put_name(struct buf *out, const struct metric_name *name)
{
    buf_add_ch(out, out->len ? ',' : '{');
    json_write_string(out, name->p, name->len);
    buf_add_ch(out, ':');
}

static void put_point(struct buf *out, const struct work *w, size_t k, size_t i)
{
    buf_add_str(out, ",[");
    put_f64(out, number_of(w, i, k));
    buf_add_ch(out, ',');
    buf_add_i64(out, w->v[i].steps);
    buf_add_ch(out, ',');
    put_time(out, &w->v[i]);
    buf_add_ch(out, ']');
}

static void put_span(struct buf *out, const struct work *w, size_t k, const struct span *s,
                     size_t end)
{
    put_name(out, &w->to->names[k]);
    buf_add_ch(out, '[');
    buf_add_i64(out, (int64_t)s->n);
    buf_add_ch(out, ',');
    put_f64(out, s->total);
    put_point(out, w, k, s->low);
    put_point(out, w, k, s->high);
    buf_add_ch(out, ',');
    buf_add(out, text_of(w, end - 1, k), value_of(w, end - 1, k)->text_len);
    buf_add_ch(out, ']');
}

static void put_zeros(struct buf *out, int n)
{
    while (n-- > 0)
        buf_add_ch(out, '0');
}

/* "1.25e-05" without an exponent, as PostgreSQL writes what it has read: "0.0000125". */
static bool put_plain(struct buf *out, const char *text)
{
    char digits[NUMTEXT_MAX];
    int n = 0, before = -1, exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (*text == '-')
        buf_add_ch(out, *text++);
    for (; *text != 'e'; text++) {
        if (*text == '.')
            before = n;
        else
            digits[n++] = *text;
    }
    int point = (before < 0 ? n : before) + exponent; /* so many digits stand before it */
    if (abs(exponent) > DIGITS_MAX)
        return false;
    if (point <= 0) {
        buf_add_str(out, "0.");
        put_zeros(out, -point);
        buf_add(out, digits, (size_t)n);
        return true;
    }
    buf_add(out, digits, (size_t)(point < n ? point : n));
    put_zeros(out, point - n);
    if (point < n) {
        buf_add_ch(out, '.');
        buf_add(out, digits + point, (size_t)(n - point));
    }
    return true;
}

/* As it stands in the report's document, once that is jsonb. */
static bool put_value(struct buf *out, const char *text, size_t len)
{
    char number[NUMTEXT_MAX];
    static const char minus_zero[] = "-0.0"; /* there is none */
    if (len == strlen(minus_zero) && memcmp(text, minus_zero, len) == 0) {
        buf_add_str(out, minus_zero + 1);
        return true;
    }
    if (len >= sizeof number || !memchr(text, 'e', len)) {
        buf_add(out, text, len);
        return true;
    }
    memcpy(number, text, len);
    number[len] = 0;
    return put_plain(out, number);
}

static bool put_values(struct buf *out, const struct work *w, size_t k, size_t from, size_t to)
{
    put_name(out, &w->to->names[k]);
    buf_add_ch(out, '"');
    for (size_t i = from; i < to; i++) {
        if (i > from)
            buf_add_ch(out, ',');
        if (!put_value(out, text_of(w, i, k), value_of(w, i, k)->text_len))
            return false;
    }
    buf_add_ch(out, '"');
    return true;
}

static void put_line(struct buf *out, const struct work *w, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++) {
        if (i > from)
            buf_add_ch(out, ',');
        buf_add_i64(out, w->v[i].steps);
    }
    for (size_t i = from; i < to; i++) {
        buf_add_ch(out, i == from ? ';' : ',');
        put_time(out, &w->v[i]);
    }
}

/* ---- All of it ------------------------------------------------------------------------------- */

static size_t chunks_of(size_t n)
{
    size_t chunks = n / METRIC_CHUNK_REPORTS;
    return chunks > METRIC_CHUNKS_MAX ? METRIC_CHUNKS_MAX : chunks;
}

/* Metric k in each chunk, and in all. */
static bool write_metric(const struct work *w, size_t k)
{
    struct span s[METRIC_CHUNKS_MAX] = {0};
    struct metric_chunks *c = w->to;
    for (size_t i = 0, from = 0; i < c->n; from = c->v[i++].end) {
        s[i] = look_at(w, k, from, c->v[i].end);
        put_span(&c->v[i].doc, w, k, &s[i], c->v[i].end);
        if (!put_values(&c->v[i].values, w, k, from, c->v[i].end))
            return false;
    }
    struct span all = join_spans(w, k, s, c->n);
    put_span(&c->whole, w, k, &all, w->n);
    return true;
}

static bool write_all(const struct work *w)
{
    struct metric_chunks *c = w->to;
    for (size_t i = 0, from = 0; i < c->n; from = c->v[i++].end) {
        c->v[i].end = w->n * (i + 1) / c->n;
        put_line(&c->v[i].line, w, from, c->v[i].end);
    }
    for (size_t k = 0; k < c->names_n; k++)
        if (!write_metric(w, k))
            return false;
    for (size_t i = 0; i < c->n; i++) {
        buf_add_ch(&c->v[i].doc, '}');
        buf_add_ch(&c->v[i].values, '}');
    }
    buf_add_ch(&c->whole, '}');
    return true;
}

bool metric_chunks_make(struct metric_chunks *ret, const struct metric_point_set *v, size_t n)
{
    struct work w = {.v = v, .n = n, .to = ret};
    *ret = (struct metric_chunks){.n = chunks_of(n)};
    if (ret->n == 0 || n > METRIC_BATCH_MAX || !find_names(ret, &v[0])) {
        *ret = (struct metric_chunks){0};
        return false;
    }
    w.value = det_reallocarray(NULL, n * ret->names_n, sizeof *w.value);
    bool made = read_all(&w) && write_all(&w);
    free(w.value);
    if (!made)
        metric_chunks_finish(ret);
    return made;
}

void metric_chunks_finish(struct metric_chunks *c)
{
    for (size_t i = 0; i < METRIC_CHUNKS_MAX; i++) {
        buf_finish(&c->v[i].doc);
        buf_finish(&c->v[i].line);
        buf_finish(&c->v[i].values);
    }
    buf_finish(&c->whole);
    *c = (struct metric_chunks){0};
}
