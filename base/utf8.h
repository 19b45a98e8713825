#ifndef BASE_UTF8_H
#define BASE_UTF8_H

#include <stddef.h>

/* Bytes of the well-formed character at p (RFC 3629: shortest form, no surrogates), of which n >= 1
 * are there; 0: it is ill-formed, or NUL. */
size_t utf8_len(const char *p, size_t n);

#endif
