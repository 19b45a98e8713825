/*
 * YAML (JSON too) to JSON. Scalars are those of YAML 1.2's core schema, and every spelling of a
 * float that people use: 1e-4, .5, 1.; yes, no and on are text; 010 is ten; !!str and its like are
 * obeyed, other tags refused. Anchors, aliases and merge keys (<<) work within a budget of nodes,
 * so that a small file cannot grow without bound. Keys become text; a key given twice is refused.
 * Errors name line and column, counted from 1.
 */
#ifndef PROTO_YAMLJSON_H
#define PROTO_YAMLJSON_H

#include "det/err.h"
#include "json.h"
#include <stddef.h>

#define YAMLJSON_NODES_MAX 100000
#define YAMLJSON_DEPTH_MAX 100

/* One document; *ret_json is a new reference (null for an empty text). DET_EINVAL; DET_ETOOBIG
 * above the limits. */
DET_MUST int yamljson_parse(const char *text, size_t len, json_t **ret_json, struct det_err *err);
/* The same, and where each value stands: *ret_lines maps dotted paths ("a.b", "list[2].c") to
 * lines. It is read as YAML only. New references. */
DET_MUST int yamljson_parse_lines(const char *text, size_t len, json_t **ret_json,
                                  json_t **ret_lines, struct det_err *err);
/* The value of a plain (unquoted) scalar. New reference; NULL if a number is out of range. */
json_t *yamljson_scalar(const char *s, size_t len);

#endif
