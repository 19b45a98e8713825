#include "metric_bundle.h"

#include "numtext.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define HEAD_MAX    32 /* of metric_doc_head() */
#define NUMBER_MAX  40 /* bytes; a longer one is not plain */
#define INT_DIGITS  18 /* so many always fit 64 bits */
#define REAL_DIGITS 15 /* a decimal of so many comes back as it was */
#define SMALL_ZEROS 3  /* behind the point, before an exponent is written */

/* The names of the object that was read last, and of the one that is being read: mostly they are
 * the same, so that none of them can be there twice. */
struct names {
    struct metric_name v[METRIC_CHUNK_NAMES];
    size_t n;
};

struct reader {
    const char *p, *end;
    struct metric_bundle *to;
    struct metric_report *report; /* the one that is being read */
    struct names averages, rows;
};

/* ---- Characters ------------------------------------------------------------------------------ */

static void skip_blanks(struct reader *r)
{
    while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r'))
        r->p++;
}

static bool take_char(struct reader *r, char ch)
{
    skip_blanks(r);
    if (r->p == r->end || *r->p != ch)
        return false;
    r->p++;
    return true;
}

static bool skip_char(struct reader *r, const char *any)
{
    if (r->p == r->end || !*r->p || !strchr(any, *r->p))
        return false;
    r->p++;
    return true;
}

static bool take_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    skip_blanks(r);
    if ((size_t)(r->end - r->p) < n || memcmp(r->p, word, n) != 0)
        return false;
    r->p += n;
    return true;
}

static bool take_string(struct reader *r, struct metric_name *ret)
{
    if (!take_char(r, '"'))
        return false;
    const char *from = r->p;
    while (r->p < r->end && *r->p != '"' && *r->p != '\\' && *r->p >= 0x20 && *r->p < 0x7f)
        r->p++;
    *ret = (struct metric_name){from, (size_t)(r->p - from)};
    return skip_char(r, "\"");
}

static bool is_same(const struct metric_name *a, const struct metric_name *b)
{
    return a->len == b->len && memcmp(a->p, b->p, a->len) == 0;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

struct number { /* as it stands there */
    const char *p;
    size_t len;
    size_t whole, behind; /* digits before and behind the point */
    size_t zeros;         /* of those behind, at their begin */
    bool has_exponent;
};

static size_t skip_digits(struct reader *r)
{
    const char *from = r->p;
    while (r->p < r->end && *r->p >= '0' && *r->p <= '9')
        r->p++;
    return (size_t)(r->p - from);
}

static bool take_behind(struct reader *r, struct number *n)
{
    const char *from = r->p;
    n->behind = skip_digits(r);
    while (n->zeros < n->behind && from[n->zeros] == '0')
        n->zeros++;
    return n->behind > 0;
}

static bool take_exponent(struct reader *r, struct number *n)
{
    n->has_exponent = true;
    skip_char(r, "+-");
    return skip_digits(r) > 0;
}

/* By JSON's rules; something that is no part of a number stands behind it. */
static bool take_number(struct reader *r, struct number *ret)
{
    skip_blanks(r);
    *ret = (struct number){.p = r->p};
    skip_char(r, "-");
    const char *first = r->p;
    ret->whole = skip_digits(r);
    if (ret->whole == 0 || (*first == '0' && ret->whole > 1))
        return false;
    if (skip_char(r, ".") && !take_behind(r, ret))
        return false;
    if (skip_char(r, "eE") && !take_exponent(r, ret))
        return false;
    ret->len = (size_t)(r->p - ret->p);
    return ret->len <= NUMBER_MAX && r->p < r->end && strchr(",}] \n\t\r", *r->p) && *r->p;
}

/* Of INT_DIGITS at most. */
static int64_t integer_of(const struct number *n)
{
    int64_t v = 0;
    for (const char *p = n->p + (*n->p == '-'); p < n->p + n->len; p++)
        v = v * 10 + (*p - '0');
    return *n->p == '-' ? -v : v;
}

static bool take_integer(struct reader *r, int64_t low, int64_t *ret)
{
    struct number n;
    if (!take_number(r, &n) || n.behind || n.has_exponent || n.whole > INT_DIGITS)
        return false;
    *ret = integer_of(&n);
    return *ret >= low && *ret <= INT32_MAX;
}

static bool take_i32(struct reader *r, int64_t *ret)
{
    return take_integer(r, INT32_MIN, ret);
}

/* Whether the real stands there as json_write() would write it. Where that is not known, no. */
static bool is_shortest(const struct number *n)
{
    const char *last = n->p + n->len - 1;
    bool is_below_one = n->p[*n->p == '-'] == '0';
    if (n->has_exponent || n->whole + n->behind > REAL_DIGITS)
        return false;
    if (*last != '0')
        return !is_below_one || n->zeros <= SMALL_ZEROS;
    return n->behind == 1;
}

static bool write_integer(struct buf *out, const struct number *n, double *ret)
{
    bool is_minus_zero = *n->p == '-' && n->p[1] == '0';
    if (n->whole > INT_DIGITS || is_minus_zero)
        return false;
    *ret = (double)integer_of(n);
    buf_add(out, n->p, n->len);
    return true;
}

static bool write_number(struct buf *out, const struct number *n, double *ret)
{
    char *end;
    if (n->behind == 0 && !n->has_exponent)
        return write_integer(out, n, ret);
    *ret = numtext_read(n->p, &end);
    if (!isfinite(*ret) || end != n->p + n->len)
        return false;
    if (is_shortest(n))
        buf_add(out, n->p, n->len);
    else
        json_write_finite(out, *ret);
    return true;
}

/* ---- Objects of numbers ---------------------------------------------------------------------- */

/* The k-th name of an object. *is_like: all before it are those of the object before. */
static bool keep_name(struct names *names, size_t k, const struct metric_name *name, bool *is_like)
{
    if (k == METRIC_CHUNK_NAMES)
        return false;
    *is_like = *is_like && k < names->n && is_same(&names->v[k], name);
    for (size_t i = 0; !*is_like && i < k; i++)
        if (is_same(&names->v[i], name))
            return false;
    names->v[k] = *name;
    return true;
}

static bool copy_member(struct reader *r, const struct metric_name *name, size_t from,
                        struct metric_value *ret)
{
    struct number n;
    struct buf *out = &r->to->texts;
    if (!take_char(r, ':') || !take_number(r, &n))
        return false;
    ret->name = out->len - from + 1;
    ret->name_len = name->len;
    buf_add(out, name->p - 1, name->len + 2); /* with its quotes */
    buf_add_ch(out, ':');
    ret->text = out->len - from;
    if (!write_number(out, &n, &ret->number))
        return false;
    ret->text_len = out->len - from - ret->text;
    return true;
}

/* As json_write() writes it. values NULL: where they are is not asked. */
static bool copy_numbers(struct reader *r, struct names *names, struct metric_values *values)
{
    struct buf *out = &r->to->texts;
    size_t from = out->len, k = 0;
    bool is_like = true;
    struct metric_name name;
    struct metric_value v;
    if (!take_char(r, '{'))
        return false;
    buf_add_ch(out, '{');
    bool is_empty = take_char(r, '}');
    if (!is_empty)
        do {
            if (k > 0)
                buf_add_ch(out, ',');
            if (!take_string(r, &name) || !keep_name(names, k++, &name, &is_like) ||
                !copy_member(r, &name, from, &v))
                return false;
            if (values)
                vec_push(values, v);
        } while (take_char(r, ','));
    names->n = k;
    buf_add_ch(out, '}');
    return is_empty || take_char(r, '}');
}

/* ---- Reports --------------------------------------------------------------------------------- */

/* An object with these members only, each at most once; on_member takes the value of the i-th. */
static bool take_members(struct reader *r, const char *const *keys, size_t n,
                         bool (*on_member)(struct reader *r, size_t i))
{
    unsigned seen = 0;
    if (!take_char(r, '{'))
        return false;
    do {
        struct metric_name key;
        size_t i = 0;
        if (!take_string(r, &key))
            return false;
        while (i < n && (strlen(keys[i]) != key.len || memcmp(keys[i], key.p, key.len) != 0))
            i++;
        if (i == n || (seen & 1u << i) || !take_char(r, ':') || !on_member(r, i))
            return false;
        seen |= 1u << i;
    } while (take_char(r, ','));
    return take_char(r, '}');
}

/* The head is put before it once the group is known. */
static bool take_averages(struct reader *r)
{
    struct metric_report *report = r->report;
    struct buf *out = &r->to->texts;
    static const char room[HEAD_MAX];
    buf_add(out, room, sizeof room);
    report->object = out->len;
    report->values = r->to->values.n;
    if (!copy_numbers(r, &r->averages, &r->to->values))
        return false;
    report->values_n = r->to->values.n - report->values;
    buf_add(out, "}", 2);
    return true;
}

static bool take_rows(struct reader *r)
{
    struct buf *out = &r->to->texts;
    size_t from = out->len;
    if (take_word(r, "null"))
        return true;
    if (!take_char(r, '['))
        return false;
    if (take_char(r, ']'))
        return true;
    buf_add_ch(out, '[');
    do {
        if (out->len > from + 1)
            buf_add_ch(out, ',');
        if (!copy_numbers(r, &r->rows, NULL))
            return false;
    } while (take_char(r, ','));
    r->report->batches = from;
    r->report->batches_len = out->len + 1 - from;
    buf_add(out, "]", 2);
    return take_char(r, ']');
}

static bool on_numbers(struct reader *r, size_t i)
{
    return i == 0 ? take_averages(r) : take_rows(r);
}

static bool on_metrics(struct reader *r, size_t i)
{
    static const char *const keys[] = {"avgMetrics", "batchMetrics"};
    switch (i) {
    case 0: return take_members(r, keys, DET_ARRAY_LEN(keys), on_numbers);
    case 1: return take_integer(r, 0, &r->report->steps);
    case 2: return take_i32(r, &r->report->trial_id);
    default: return take_i32(r, &r->report->run_id);
    }
}

static bool take_group(struct reader *r)
{
    struct metric_name name;
    if (!take_string(r, &name) || name.len == 0 || name.len > METRIC_GROUP_MAX ||
        memchr(name.p, '.', name.len))
        return false;
    r->report->group = r->to->texts.len;
    buf_add(&r->to->texts, name.p, name.len);
    buf_add_ch(&r->to->texts, 0);
    return true;
}

static bool on_report(struct reader *r, size_t i)
{
    static const char *const keys[] = {"metrics", "stepsCompleted", "trialId", "trialRunId"};
    return i == 0 ? take_group(r) : take_members(r, keys, DET_ARRAY_LEN(keys), on_metrics);
}

static void put_head(struct metric_bundle *b, struct metric_report *report)
{
    const char *head = metric_doc_head(b->texts.p + report->group);
    report->metrics = report->object - strlen(head);
    memcpy(b->texts.p + report->metrics, head, strlen(head));
}

static bool take_report(struct reader *r)
{
    static const char *const keys[] = {"group", "metrics"};
    struct metric_bundle *b = r->to;
    if (b->n == METRIC_BATCH_MAX)
        return false;
    r->report = &b->v[b->n++];
    *r->report = (struct metric_report){.group = SIZE_MAX, .object = SIZE_MAX, .batches = SIZE_MAX};
    if (!take_members(r, keys, DET_ARRAY_LEN(keys), on_report) || r->report->group == SIZE_MAX ||
        r->report->object == SIZE_MAX)
        return false;
    put_head(b, r->report);
    return true;
}

static bool on_reports(struct reader *r, size_t i)
{
    (void)i;
    if (!take_char(r, '['))
        return false;
    do {
        if (!take_report(r))
            return false;
    } while (take_char(r, ','));
    return take_char(r, ']');
}

const char *metric_doc_head(const char *group)
{
    return strcmp(group, "validation") == 0 ? "{\"validation_metrics\":" : "{\"avg_metrics\":";
}

void metric_bundle_finish(struct metric_bundle *b)
{
    buf_finish(&b->texts);
    vec_free(&b->values);
    b->n = 0;
}

bool metric_bundle_read(struct metric_bundle *ret, const char *text, size_t len)
{
    static const char *const keys[] = {"reports"};
    struct reader r = {.p = text, .end = text + len, .to = ret};
    buf_reserve(&ret->texts, len);
    bool is_plain = take_members(&r, keys, DET_ARRAY_LEN(keys), on_reports);
    skip_blanks(&r);
    if (is_plain && r.p == r.end)
        return true;
    metric_bundle_finish(ret);
    return false;
}
