/*
 * JSON objects made of a row's columns: the statement names the members, in its columns' names, and
 * PostgreSQL is spared making the text. "a.b" is member b of the object a, whose members stand side
 * by side; a is null where the first of them is. A name that ends in "?" is left out when null.
 * Numbers, booleans, json and jsonb stand as they are (NaN and the infinities in quotes), times as
 * RFC 3339 in UTC with microseconds, everything else as a string.
 */
#ifndef DB_DB_DOC_H
#define DB_DB_DOC_H

#include "db.h"

/* Appends "name":value of columns [from, to), with commas between; to < 0: up to the last. */
void db_put_members(struct buf *out, const struct db_result *r, int row, int from, int to);
/* A list of objects: all rows, each with all of its columns. */
void db_put_rows(struct buf *out, const struct db_result *r);

#endif
