/* Columns of many rows as arguments: each is one array, for unnest($1::integer[], ...).
 * Private to db/. */
#ifndef DB_DB_ARRAY_H
#define DB_DB_ARRAY_H

#include "buf.h"
#include "db.h"

/* Columns in the order of the statement's parameters; zero-initialised. */
struct db_columns {
    struct buf v[DB_ARGS_MAX];
    int n;  /* columns of a row */
    int at; /* the column that is next in the row under way */
};
/* The row's next value; NULL: SQL null. is_number: or a boolean, told without quotes. */
void db_col(struct db_columns *c, const char *s, bool is_number);
void db_col_row_end(struct db_columns *c);
size_t db_columns_bytes(const struct db_columns *c);
/* Appends the statement with all columns as $1.., and empties c; nothing when there are no rows. */
void db_columns_add(struct db_columns *c, struct db_tx *tx, const char *sql);

#endif
