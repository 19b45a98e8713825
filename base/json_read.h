#ifndef BASE_JSON_READ_H
#define BASE_JSON_READ_H

#include "json.h"

/* Reads well-formed, ordinary text several times faster than jansson does; json.c only. NULL: the
 * text is wrong, or has what is rare (an escaped key, characters beyond U+FFFF written as escapes,
 * NUL, an integer of more than 18 digits, a depth of more than 256), and jansson is to judge it.
 * Whatever is read here jansson reads too, to an equal value with its keys in the same order. */
json_t *json_read(const char *text, size_t len);

#endif
