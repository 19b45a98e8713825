/*
 * A large member taken out of a JSON text without building its values: the text is checked in one
 * pass and the member found as a span of it. The rest stays small enough for json_parse().
 *
 * What passes the check is valid for json_parse() too, but for one thing: a key that comes twice
 * inside the member is not refused. Thread: any.
 */
#ifndef BASE_JSON_CUT_H
#define BASE_JSON_CUT_H

#include "buf.h"
#include <stdbool.h>
#include <stddef.h>

#define JSON_CUT_DEPTH 512

struct json_step { /* a key and another spelling of it */
    const char *key, *alias;
};
struct json_span {
    const char *p; /* into the text; NULL: no such member */
    size_t len;
};

/* Looks for the array at path (n steps, each a key of an object in an object). False when the text
 * is not valid JSON, or a step of the path comes twice: parse it for the reason. */
bool json_cut(const char *text, size_t len, const struct json_step *path, size_t n,
              struct json_span *ret);
/* The text with the span replaced by an empty array. */
void json_cut_rest(const char *text, size_t len, const struct json_span *cut, struct buf *ret);

#endif
