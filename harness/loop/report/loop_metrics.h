/*
 * Named metric values, as a trial's hooks return them and as reports carry them.
 *
 * A value is a number, an array of numbers, any JSON, or none (Python's None: left out of
 * averages). A number may come later: the owner of the row knows it by a ticket, and it is settled
 * before anybody else sees the row. Names and values are copied. Order is that of first setting;
 * setting a name again replaces its value in place. Clearing keeps the memory, so that a loop that
 * sets the same names for every batch allocates nothing. Names have at most LOOP_METRIC_NAME_MAX
 * bytes; longer ones are cut.
 */
#ifndef LOOP_METRICS_H
#define LOOP_METRICS_H

#include "json.h"
#include <stdbool.h>
#include <stddef.h>

#define LOOP_METRIC_NAME_MAX 256

enum loop_metric_kind {
    LOOP_METRIC_NONE,
    LOOP_METRIC_F64,
    LOOP_METRIC_ARRAY,
    LOOP_METRIC_JSON,
    LOOP_METRIC_LATER
};

struct loop_metric {
    char *name;
    enum loop_metric_kind kind;
    double f64;    /* kind F64 */
    double *array; /* kind ARRAY: n values */
    size_t n, array_cap;
    size_t ticket; /* kind LATER */
    json_t *json;  /* kind JSON */
};

struct loop_metrics {
    struct loop_metric *v;
    size_t n, cap; /* entries v[n..cap) keep their memory for the next round */
};
#define LOOP_METRICS_INIT                                                                          \
    {                                                                                              \
        0                                                                                          \
    }

void loop_metrics_finish(struct loop_metrics *m);
void loop_metrics_clear(struct loop_metrics *m);
void loop_metrics_f64(struct loop_metrics *m, const char *name, double value);
/* n = 0 is an empty array. */
void loop_metrics_array(struct loop_metrics *m, const char *name, const double *values, size_t n);
/* Copies (deeply); numbers and nested lists of numbers average like arrays, other values are
 * kept. */
void loop_metrics_json(struct loop_metrics *m, const char *name, const json_t *value);
void loop_metrics_none(struct loop_metrics *m, const char *name);
void loop_metrics_later(struct loop_metrics *m, const char *name, size_t ticket);
/* What came later is values[its ticket]. */
void loop_metrics_settle(struct loop_metrics *m, const double *values, size_t n);
/* Borrowed, NULL if absent. */
const struct loop_metric *loop_metrics_find(const struct loop_metrics *m, const char *name);
/* dst's entry of every name of src becomes src's. */
void loop_metrics_merge(struct loop_metrics *dst, const struct loop_metrics *src);
/* True and *ret if the value is a numeric scalar (a number, a bool, an array of one). */
bool loop_metric_scalar(const struct loop_metric *x, double *ret);

/* {"name": value}; NaN and infinities become their strings. New reference. */
json_t *loop_metrics_to_json(const struct loop_metrics *m);
/* The same as text, compact; much cheaper. */
void loop_metrics_write(struct buf *out, const struct loop_metrics *m);
void loop_metrics_from_json(struct loop_metrics *m, const json_t *object);

#endif
