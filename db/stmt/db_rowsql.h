/*
 * Statements over the columns of rows (proto/rowtable.h). Their texts name lists, which are put in
 * when a statement is first used:
 *   @names     id, state    @values  $1::integer, $2::text   @arrays    $1::integer[], $2::text[]
 *   @sets      state = $2::text   @joined  state = v.state    @excluded  state = excluded.state
 *   @reads     every column that is read, for db_rowsql_read()
 * Of these @sets, @joined and @excluded have what changes only. Private to db/.
 */
#ifndef DB_DB_ROWSQL_H
#define DB_DB_ROWSQL_H

#include "db_array.h"
#include "rowtable.h"

struct db_rowsql {
    enum row_kind kind;
    bool is_new; /* of what is written once too */
    int before;  /* how many parameters of its own the text has, $1.. */
    const char *text;
    char *made; /* kept for good */
};
const char *db_rowsql(struct db_rowsql *s);
/* The row's values as the next arguments. */
void db_rowsql_args(struct db_args *a, const struct db_rowsql *s, const void *row);
/* As the next elements of the columns; a statement goes out when they are large. */
void db_rowsql_add(struct db_columns *c, struct db_tx *tx, struct db_rowsql *s, const void *row);
/* What is left of them. */
void db_rowsql_flush(struct db_columns *c, struct db_tx *tx, struct db_rowsql *s);
/* Row i of @reads; texts are borrowed of the result. */
DET_MUST int db_rowsql_read(const struct db_result *r, int i, enum row_kind kind, void *row,
                            struct det_err *err);

#endif
