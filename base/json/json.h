/*
 * JSON: the only includer of jansson.h; everybody else uses jansson's API through this header.
 * Numbers print in the shortest form that reads back to the same double; the doubles JSON cannot
 * hold are the strings "NaN", "Infinity", "-Infinity" (as protobuf's JSON has them).
 */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include "buf.h"
#include "det/err.h"
#include "mem.h"
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* For locals that own (json_decrefp is jansson's). */
#define JSON_OWN det_cleanup(json_decrefp) json_t *

/* Strict (duplicate keys are refused); an integer beyond 64 bits becomes a real; the error names
 * line and column. NULL on failure. */
json_t *json_parse(const char *text, size_t len, struct det_err *err);
/* The same, but strings may hold NUL: readers use json_string_length(). */
json_t *json_parse_nul(const char *text, size_t len, struct det_err *err);
void json_write(struct buf *out, const json_t *j);        /* compact, keys in insertion order */
void json_write_pretty(struct buf *out, const json_t *j); /* indent 2 */
/* The pieces, for writing without building values first: a quoted string (n bytes of UTF-8), a
 * number. */
void json_write_string(struct buf *out, const char *s, size_t n);
void json_write_finite(struct buf *out, double v);
char *json_text(const json_t *j); /* compact; caller frees */
/* Members, compact, behind the "{" or the member that out ends with; the comma comes by itself. The
 * key is one of ours: nothing in it is escaped. s: UTF-8. */
void json_add_key(struct buf *out, const char *key);
void json_add_str(struct buf *out, const char *key, const char *s);
void json_add_int(struct buf *out, const char *key, int64_t v);
void json_add_flag(struct buf *out, const char *key, bool v);
void json_add(struct buf *out, const char *key, const json_t *v);

/* Member access with a fallback; wrong type counts as absent. Strings are borrowed from obj. */
const char *json_str(const json_t *obj, const char *key, const char *fallback);
int64_t json_int(const json_t *obj, const char *key, int64_t fallback); /* also "123" strings */
double json_num(const json_t *obj, const char *key, double fallback);   /* also "NaN" etc. */
bool json_flag(const json_t *obj, const char *key, bool fallback);
json_t *json_obj(const json_t *obj, const char *key); /* borrowed; NULL unless an object */
json_t *json_arr(const json_t *obj, const char *key); /* borrowed; NULL unless an array */
/* The keys in ascending byte order: borrowed strings in an array that the caller frees. */
const char **json_sorted_keys(const json_t *obj, size_t *ret_n);
/* Dotted path ("optimizer.lr"); borrowed, NULL if absent. */
json_t *json_path(const json_t *obj, const char *path);
/* json_real() that cannot fail: NaN and infinities become their strings. New reference. */
json_t *json_double(double v);
/* A 64-bit integer as protobuf's JSON writes it: a decimal string. New reference. */
json_t *json_i64s(int64_t v);
/* Whether it is UTF-8, as all keys and strings must be. */
bool json_is_text(const char *s);
/* A string that may hold invalid UTF-8: offending bytes, and NUL,
 * become U+FFFD. New reference. */
json_t *json_lossy(const char *s, size_t len);
/* obj[key] = value (takes the reference); NULL value becomes null. */
void json_set(json_t *obj, const char *key, json_t *value);
/* Builders for tables of literals: json_pack with the reference taken; aborts on a bad format. */
json_t *json_make(const char *fmt, ...);

#endif
