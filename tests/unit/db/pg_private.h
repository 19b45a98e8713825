/* A private PostgreSQL for a C test, by tests/lib/pg.sh, and a loop to wait on. */
#ifndef TESTS_PG_PRIVATE_H
#define TESTS_PG_PRIVATE_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "db.h"

struct pg_private {
    char dir[64], uri[128];
};
int pg_private_start(struct pg_private *p); /* 0, or skip the test */
void pg_private_stop(struct pg_private *p); /* the server only */
int pg_private_again(struct pg_private *p); /* after stop */
void pg_private_down(struct pg_private *p);
/* A started server, with a migrated database open on the loop; -1 with a line about why not. */
int pg_private_open(struct pg_private *p, uv_loop_t *loop, struct db **ret);
int pg_private_open_as(struct pg_private *p, uv_loop_t *loop, struct db_options o, struct db **ret);
/* The same of a server that is started already. */
int pg_private_connect(struct pg_private *p, uv_loop_t *loop, struct db_options o, struct db **ret);
/* The end of that: the database and the loop closed, the server gone. */
void pg_private_close(struct pg_private *p, uv_loop_t *loop, struct db *db);
/* To every process of the server: SIGSTOP makes it hang until SIGCONT. */
void pg_private_signal(const struct pg_private *p, int number);
/* What a callback of db.h gets: text is the first column of the first row, "-" without one, or what
 * went wrong. */
struct pg_answer {
    bool done;
    int rc;
    char text[4096];
};
void pg_private_on_answer(void *arg, const struct db_result *r);
/* One such text by the pool; good until it is asked again. What is written must go well, and no
 * read behind it has an answer of before. */
const char *pg_private_read(uv_loop_t *loop, struct db *db, const char *sql);
void pg_private_write(uv_loop_t *loop, struct db *db, const char *sql);
/* The first column of the first row, "" without one; good until it is asked again. */
const char *pg_private_ask(PGconn *c, const char *sql);
/* Runs the loop until *flag or the deadline; false at the deadline. */
bool loop_until(uv_loop_t *loop, const bool *flag, unsigned deadline_ms);

#endif
