/*
 * One pipelined connection on the loop: connects, sends, reads results in order, notices its end.
 * It does not reconnect by itself. Private to db/.
 *
 * A FIFO of what was sent is the only truth about what comes back: PQgetResult gives NULL after
 * each statement's results but none after a sync, so NULLs are not counted on.
 */
#ifndef DB_DB_CONN_H
#define DB_DB_CONN_H

#include "db_prep.h"

enum db_conn_state { CONN_DOWN, CONN_CONNECTING, CONN_UP };

/* One thing sent. r is borrowed; of a sync it is NULL, or the failure of the commit. After a lost
 * connection every op in the FIFO gets DET_EUNAVAIL (a sync too, as a result), the state being
 * CONN_DOWN already. */
typedef void db_op_cb(void *arg, const struct db_result *r);

struct db_op;
struct db_conn {
    uv_loop_t *loop;
    PGconn *pg;
    uv_poll_t *poll; /* of pg's socket; NULL when down */
    int fd;
    uv_timer_t *gone; /* libpq gave the socket up while it wrote: ends the connection from the
                       * loop */
    enum db_conn_state state;
    struct db_op *head, *tail;
    struct db_op **unsent; /* the link to the first that libpq was not given yet */
    size_t unflushed;      /* bytes given to libpq since it had sent all */
    size_t ops;            /* in the FIFO */
    bool is_plain;         /* while units are tried one by one: nothing new is prepared */
    struct db_preps preps;
    int quiet; /* calls of db_conn_tick() since anything came, or was first waited for */
    struct db_result last; /* of the head statement, until its NULL */
    bool have_last;
    void (*on_up)(struct db_conn *c);
    void (*on_down)(struct db_conn *c, const char *why);
    void *owner;
};

/* Begins to connect; ends in on_up or on_down, never from inside. DET_EUNAVAIL with libpq's reason
 * where it does not even begin. */
DET_MUST int db_conn_open(struct db_conn *c, const char *conninfo, struct det_err *err);
/* Joins an already established, idle, blocking connection to the loop; takes pg. */
int db_conn_adopt(struct db_conn *c, PGconn *pg);
/* Called every so often: true when something was waited for through more than `most` of these
 * calls, and nothing came: the connection is then closed as if it were lost (on_down is called). */
bool db_conn_tick(struct db_conn *c, int most);
/* Closes; FIFO ops end with DET_EUNAVAIL; on_down is not called. */
void db_conn_close(struct db_conn *c);
/* Takes s. Nothing is sent before the next db_conn_sync(), and then only as fast as the server
 * reads: libpq's buffer never shrinks again. */
void db_conn_send(struct db_conn *c, struct db_stmt *s, db_op_cb *cb, void *arg);
/* The same with s borrowed until its callback. */
void db_conn_lend(struct db_conn *c, struct db_stmt *s, db_op_cb *cb, void *arg);
void db_conn_sync(struct db_conn *c, db_op_cb *cb, void *arg);

#endif
