/* A table for people: columns as wide as their widest cell; numbers to the right. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>

struct table;
/* heads are borrowed; a head that begins with '>' aligns its column to the right. */
struct table *table_create(const char *const *heads, size_t n);
/* The next cell, row after row; the text is copied. */
void table_cell(struct table *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* From here on tables are printed as CSV, with their heads also when empty: RFC 4180 but for its
 * CR before each LF, which the next command of a shell would take for data. */
void table_as_csv(void);
bool table_is_csv(void);
void table_destroy(struct table *t);
/* Cuts the texts of column col, to 12 columns at least, where that makes the table as narrow as
 * `most` columns of a terminal; CSV stays whole. */
void table_fit(struct table *t, size_t col, size_t most);
/* Prints to standard output and destroys. With no rows prints `empty` instead. */
void table_print(struct table *t, const char *empty);

#endif
