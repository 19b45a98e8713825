/*
 * Regular expressions in RE2's syntax, for patterns that users write and lines that users print: no
 * pattern is slow. A pattern becomes a program for Thompson's machine (Thompson 1968; as Cox,
 * "Regular Expression Matching: the Virtual Machine Approach", 2009, tells it), whose time is
 * bytes of text times size of the program, and whose memory is the program's size.
 *
 * Taken: literals . [..] [^..] [[:alpha:]] \d \D \w \W \s \S \b \B \A \z ^ $ \n \t \r \f \v \a \xHH
 * (..) (?:..) (?P<name>..) (?i) (?ism:..) | * + ? {n} {n,} {n,m}, and each of these with a ? after
 * it. Not taken: what is not regular (back references, look-around), \p{..}, characters beyond
 * ASCII in [..]. Text is bytes: . and [^..] match one byte, but no . matches a newline.
 */
#ifndef BASE_PATTERN_H
#define BASE_PATTERN_H

#include "det/err.h"
#include <stdbool.h>
#include <stdint.h>

struct pattern;

#define PATTERN_TEXT_MAX 512  /* bytes of a pattern */
#define PATTERN_SIZE_MAX 1000 /* instructions of its program: x{500}{500} is refused */

/* DET_EINVAL says what is wrong and where. The caller destroys *ret. */
DET_MUST int pattern_compile(const char *text, struct pattern **ret, struct det_err *err);
void pattern_destroy(struct pattern *p); /* NULL ok */
/* Whether it matches somewhere in the text. What that cost is taken from *steps (about a
 * nanosecond each); false once nothing of them is left. */
bool pattern_find(const struct pattern *p, const char *text, size_t len, int64_t *steps);

#endif
