#include "loop_metrics.h"

#include <math.h>
#include <string.h>

static void metric_finish(struct loop_metric *x)
{
    free(x->name);
    free(x->array);
    json_decref(x->json);
}

void loop_metrics_finish(struct loop_metrics *m)
{
    for (size_t i = 0; i < m->cap; i++)
        metric_finish(&m->v[i]);
    free(m->v);
    *m = (struct loop_metrics)LOOP_METRICS_INIT;
}

static void drop_json(struct loop_metric *x)
{
    json_decref(x->json);
    x->json = NULL;
}

void loop_metrics_clear(struct loop_metrics *m)
{
    for (size_t i = 0; i < m->n; i++)
        drop_json(&m->v[i]);
    m->n = 0;
}

static void grow_table(struct loop_metrics *m)
{
    size_t cap = m->cap ? 2 * m->cap : 4;
    m->v = det_reallocarray(m->v, cap, sizeof *m->v);
    memset(m->v + m->cap, 0, (cap - m->cap) * sizeof *m->v);
    m->cap = cap;
}

/* A name as it is kept: valid UTF-8 of bounded length. NULL when it is so already, else the
 * caller's. */
static char *mend_name(const char *name)
{
    size_t n = 0;
    while (n <= LOOP_METRIC_NAME_MAX && name[n] > 0)
        n++;
    if (n <= LOOP_METRIC_NAME_MAX && name[n] == 0)
        return NULL; /* short and ASCII: nearly always */
    JSON_OWN s = json_lossy(name, strnlen(name, LOOP_METRIC_NAME_MAX));
    return det_strdup(json_string_value(s));
}

/* The entry of `name`. A cleared table is filled again in the same order as a rule, so the next
 * unused entry usually has the name already. */
static struct loop_metric *claim_entry(struct loop_metrics *m, const char *name)
{
    det_cleanup(freep) char *better = mend_name(name);
    name = better ? better : name;
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->v[i].name, name) == 0) {
            drop_json(&m->v[i]);
            return &m->v[i];
        }
    if (m->n == m->cap)
        grow_table(m);
    struct loop_metric *x = &m->v[m->n++];
    if (!x->name || strcmp(x->name, name) != 0) {
        free(x->name);
        x->name = det_strdup(name);
    }
    return x;
}

void loop_metrics_f64(struct loop_metrics *m, const char *name, double value)
{
    struct loop_metric *x = claim_entry(m, name);
    x->kind = LOOP_METRIC_F64;
    x->f64 = value;
}

void loop_metrics_array(struct loop_metrics *m, const char *name, const double *values, size_t n)
{
    struct loop_metric *x = claim_entry(m, name);
    x->kind = LOOP_METRIC_ARRAY;
    if (n > x->array_cap) {
        x->array = det_reallocarray(x->array, n, sizeof *x->array);
        x->array_cap = n;
    }
    if (n)
        memcpy(x->array, values, n * sizeof *values);
    x->n = n;
}

void loop_metrics_json(struct loop_metrics *m, const char *name, const json_t *value)
{
    struct loop_metric *x = claim_entry(m, name);
    x->kind = LOOP_METRIC_JSON;
    x->json = json_deep_copy(value);
}

void loop_metrics_none(struct loop_metrics *m, const char *name)
{
    claim_entry(m, name)->kind = LOOP_METRIC_NONE;
}

void loop_metrics_later(struct loop_metrics *m, const char *name, size_t ticket)
{
    struct loop_metric *x = claim_entry(m, name);
    x->kind = LOOP_METRIC_LATER;
    x->ticket = ticket;
}

void loop_metrics_settle(struct loop_metrics *m, const double *values, size_t n)
{
    for (size_t i = 0; i < m->n; i++) {
        struct loop_metric *x = &m->v[i];
        if (x->kind != LOOP_METRIC_LATER)
            continue;
        x->kind = LOOP_METRIC_F64;
        x->f64 = x->ticket < n ? values[x->ticket] : NAN;
    }
}

const struct loop_metric *loop_metrics_find(const struct loop_metrics *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (strcmp(m->v[i].name, name) == 0)
            return &m->v[i];
    return NULL;
}

static void copy_one(struct loop_metrics *dst, const struct loop_metric *x)
{
    switch (x->kind) {
    case LOOP_METRIC_NONE: loop_metrics_none(dst, x->name); break;
    case LOOP_METRIC_F64: loop_metrics_f64(dst, x->name, x->f64); break;
    case LOOP_METRIC_ARRAY: loop_metrics_array(dst, x->name, x->array, x->n); break;
    case LOOP_METRIC_JSON: loop_metrics_json(dst, x->name, x->json); break;
    case LOOP_METRIC_LATER: loop_metrics_later(dst, x->name, x->ticket); break;
    }
}

void loop_metrics_merge(struct loop_metrics *dst, const struct loop_metrics *src)
{
    for (size_t i = 0; i < src->n; i++)
        copy_one(dst, &src->v[i]);
}

bool loop_metric_scalar(const struct loop_metric *x, double *ret)
{
    if (x->kind == LOOP_METRIC_F64)
        *ret = x->f64;
    else if (x->kind == LOOP_METRIC_ARRAY && x->n == 1)
        *ret = x->array[0];
    else if (x->kind == LOOP_METRIC_JSON && json_is_number(x->json))
        *ret = json_number_value(x->json);
    else if (x->kind == LOOP_METRIC_JSON && json_is_boolean(x->json))
        *ret = json_is_true(x->json);
    else
        return false;
    return true;
}

static json_t *metric_to_json(const struct loop_metric *x)
{
    if (x->kind == LOOP_METRIC_F64)
        return json_double(x->f64);
    if (x->kind == LOOP_METRIC_JSON)
        return json_deep_copy(x->json);
    if (x->kind == LOOP_METRIC_NONE || x->kind == LOOP_METRIC_LATER)
        return json_null();
    json_t *a = json_array();
    for (size_t i = 0; i < x->n; i++)
        json_array_append_new(a, json_double(x->array[i]));
    return a;
}

json_t *loop_metrics_to_json(const struct loop_metrics *m)
{
    json_t *o = json_object();
    for (size_t i = 0; i < m->n; i++)
        json_set(o, m->v[i].name, metric_to_json(&m->v[i]));
    return o;
}

static void write_number(struct buf *out, double v)
{
    if (v - v == 0)
        json_write_finite(out, v);
    else
        buf_add_str(out, v != v ? "\"NaN\"" : v > 0 ? "\"Infinity\"" : "\"-Infinity\"");
}

static void write_metric(struct buf *out, const struct loop_metric *x)
{
    switch (x->kind) {
    case LOOP_METRIC_NONE:
    case LOOP_METRIC_LATER: buf_add_str(out, "null"); return;
    case LOOP_METRIC_F64: write_number(out, x->f64); return;
    case LOOP_METRIC_JSON: json_write(out, x->json); return;
    case LOOP_METRIC_ARRAY: break;
    }
    buf_add_ch(out, '[');
    for (size_t i = 0; i < x->n; i++) {
        if (i)
            buf_add_ch(out, ',');
        write_number(out, x->array[i]);
    }
    buf_add_ch(out, ']');
}

void loop_metrics_write(struct buf *out, const struct loop_metrics *m)
{
    buf_add_ch(out, '{');
    for (size_t i = 0; i < m->n; i++) {
        if (i)
            buf_add_ch(out, ',');
        json_write_string(out, m->v[i].name, strlen(m->v[i].name));
        buf_add_ch(out, ':');
        write_metric(out, &m->v[i]);
    }
    buf_add_ch(out, '}');
}

/* The three doubles that JSON cannot hold come back as what they were. */
static bool read_special(const json_t *v, double *ret)
{
    const char *s = json_string_value(v);
    if (!s)
        return false;
    if (strcmp(s, "NaN") == 0)
        *ret = __builtin_nan("");
    else if (strcmp(s, "Infinity") == 0)
        *ret = __builtin_inf();
    else if (strcmp(s, "-Infinity") == 0)
        *ret = -__builtin_inf();
    else
        return false;
    return true;
}

static bool read_number(const json_t *v, double *ret)
{
    if (!json_is_number(v))
        return read_special(v, ret);
    *ret = json_number_value(v);
    return true;
}

/* A list of numbers is an array again, or its NaNs would be strings on the other ranks. */
static bool read_array(struct loop_metrics *m, const char *name, const json_t *v)
{
    size_t n = json_array_size(v), i = 0;
    if (!json_is_array(v))
        return false;
    det_cleanup(freep) double *values = det_zalloc((n + 1) * sizeof *values);
    while (i < n && read_number(json_array_get(v, i), &values[i]))
        i++;
    if (i == n)
        loop_metrics_array(m, name, values, n);
    return i == n;
}

void loop_metrics_from_json(struct loop_metrics *m, const json_t *object)
{
    const char *key;
    json_t *v;
    double d;
    json_object_foreach((json_t *)object, key, v)
    {
        if (read_number(v, &d))
            loop_metrics_f64(m, key, d);
        else if (read_array(m, key, v))
            continue;
        else if (json_is_null(v))
            loop_metrics_none(m, key);
        else
            loop_metrics_json(m, key, v);
    }
}
