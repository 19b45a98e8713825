/* How many columns of a terminal a text takes: names come in every script. Pure. */
#ifndef CLI_WIDE_H
#define CLI_WIDE_H

#include <stddef.h>

/* The first character of s, which is UTF-8 and not empty: its bytes, and its columns: 2 of East
 * Asian and pictures, 0 of what is drawn over the one before. Bytes that are no UTF-8 are a column
 * each. */
size_t wide_char(const char *s, int *ret_columns);
/* Of a whole text without line ends. */
size_t wide_columns(const char *s);
/* The bytes of the longest beginning of s that takes `columns` at most; ends at a line end. */
size_t wide_cut(const char *s, int columns);

#endif
