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
/* Each appends one value, column by column, row by row. */
void db_col_str(struct db_columns *c, const char *s); /* NULL: SQL null; also JSON */
void db_col_i64(struct db_columns *c, int64_t v);
void db_col_i64_or_null(struct db_columns *c, int64_t v, bool null);
void db_col_bool(struct db_columns *c, bool v);
void db_col_time(struct db_columns *c, int64_t wall_us); /* 0: SQL null */
void db_col_row_end(struct db_columns *c);
size_t db_columns_bytes(const struct db_columns *c);
/* Appends the statement with all columns as $1.., and empties c; nothing when there are no rows. */
void db_columns_add(struct db_columns *c, struct db_tx *tx, const char *sql);

#endif
