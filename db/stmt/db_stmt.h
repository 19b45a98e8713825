/* A statement kept until it is sent, and a result. Private to db/. */
#ifndef DB_DB_STMT_H
#define DB_DB_STMT_H

#include "db.h"
#include <libpq-fe.h>

struct db_stmt {
    const char *sql; /* constant text */
    int n;
    const char *v[DB_ARGS_MAX]; /* into data */
    int len[DB_ARGS_MAX], format[DB_ARGS_MAX];
    size_t bytes;
    char data[];
};
struct db_stmt *db_stmt_create(const char *sql, const struct db_args *args); /* free() */
bool db_stmt_equal(const struct db_stmt *a, const struct db_stmt *b);

struct db_result {
    PGresult *pg; /* owned; NULL when there is none */
    int rc;
    struct det_err err;
    char in[64]; /* the beginning of the statement that failed; "" */
    char sqlstate[6];
    size_t index;            /* of the statement within its unit */
    struct shared_buf *made; /* db_made(); borrowed */
};
/* Takes pg and reads its status. */
void db_result_init(struct db_result *r, PGresult *pg, const char *sql);
void db_result_fail(struct db_result *r, int code, const char *text);
void db_result_finish(struct db_result *r);

#endif
