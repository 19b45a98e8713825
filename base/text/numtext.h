/* Doubles as text: the shortest decimal that reads back to the same double, in the form of
 * "%.*g" (what Python's repr shows, but for the exponent's threshold). */
#ifndef BASE_NUMTEXT_H
#define BASE_NUMTEXT_H

#include <stddef.h>

#define NUMTEXT_MAX 32
/* v must be finite. Returns the length. */
size_t numtext(double v, char out[NUMTEXT_MAX]);
/* strtod(), but quicker for decimals of up to 19 digits without an exponent. */
double numtext_read(const char *text, char **ret_end);

#endif
