/*
 * The numbers of a report, found in the text that they are written into: what makes chunks of many
 * reports does not read their documents again. Thread: any.
 */
#ifndef PROTO_METRIC_VALUES_H
#define PROTO_METRIC_VALUES_H

#include "json.h"
#include "vec.h"

#define METRIC_CHUNK_NAMES 100 /* of more nobody draws each */

struct metric_value {
    size_t name, name_len; /* where it stands, counted from the object's "{" */
    size_t text, text_len; /* the number, as json_write() writes it */
    double number;
};

struct metric_values {
    struct metric_value *v;
    size_t n, cap;
};

/* The object as json_write() writes it. Where all of it are numbers, not more than
 * METRIC_CHUNK_NAMES and with names that stand for themselves, they are added to *ret; else none
 * is. Returns how many were added. values NULL: an empty object. */
size_t metric_values_write(struct buf *out, const json_t *values, struct metric_values *ret);

#endif
