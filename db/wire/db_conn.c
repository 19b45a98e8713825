#include "db_conn.h"

#include "mem.h"

#include <string.h>

/* Given to libpq before it is asked whether all went out. */
enum { UNFLUSHED_MAX = 64 << 10 };

struct db_op {
    struct db_op *next;
    const char *sql;      /* NULL: a sync */
    struct db_stmt *stmt; /* NULL: a preparation, or sent and not lent */
    bool is_lent;         /* stmt is */
    struct db_prep *prep; /* what it uses */
    db_op_cb *cb;
    void *arg;
};

static void on_socket(uv_poll_t *h, int status, int events);

static void on_handle_closed(uv_handle_t *h)
{
    free(h);
}

static void poll_drop(struct db_conn *c)
{
    if (!c->poll)
        return;
    uv_poll_stop(c->poll);
    c->poll->data = NULL;
    uv_close((uv_handle_t *)c->poll, on_handle_closed);
    c->poll = NULL;
    c->fd = -1;
}

/* libpq may change its socket while connecting, so the handle follows the descriptor. */
static void poll_for(struct db_conn *c, int events)
{
    int fd = PQsocket(c->pg);
    if (c->poll && c->fd != fd)
        poll_drop(c);
    if (!c->poll) {
        c->poll = det_zalloc(sizeof *c->poll);
        c->poll->data = c;
        c->fd = fd;
        if (uv_poll_init(c->loop, c->poll, fd) < 0)
            abort(); /* libpq gave an open socket */
    }
    uv_poll_start(c->poll, events, on_socket);
}

/* At the end of the FIFO, to be sent. */
static struct db_op *op_push(struct db_conn *c, const char *sql, db_op_cb *cb, void *arg)
{
    struct db_op *op = det_zalloc(sizeof *op);
    op->sql = sql;
    op->cb = cb;
    op->arg = arg;
    if (!c->head) {
        c->quiet = 0;
        c->unsent = &c->head;
    }
    if (c->tail)
        c->tail->next = op;
    else
        c->head = op;
    c->tail = op;
    c->ops++;
    return op;
}

static void op_free(struct db_op *op)
{
    if (!op->is_lent)
        free(op->stmt);
    free(op);
}

static struct db_op *op_pop(struct db_conn *c)
{
    struct db_op *op = c->head;
    c->head = op->next;
    if (!c->head)
        c->tail = NULL;
    if (c->unsent == &op->next)
        c->unsent = &c->head;
    c->ops--;
    return op;
}

static void ops_fail(struct db_conn *c, const char *why)
{
    struct db_op *op = c->head; /* callbacks may send again: cut the list off first */
    c->head = c->tail = NULL;
    c->unsent = &c->head;
    c->ops = 0;
    while (op) {
        struct db_op *next = op->next;
        struct db_result r;
        db_result_fail(&r, DET_EUNAVAIL, why);
        if (op->cb)
            op->cb(op->arg, &r);
        op_free(op);
        op = next;
    }
}

static void gone_drop(struct db_conn *c)
{
    if (!c->gone)
        return;
    c->gone->data = NULL;
    uv_close((uv_handle_t *)c->gone, on_handle_closed);
    c->gone = NULL;
}

void db_conn_close(struct db_conn *c)
{
    poll_drop(c);
    gone_drop(c);
    PQfinish(c->pg);
    c->pg = NULL;
    c->state = CONN_DOWN;
    if (c->have_last)
        db_result_finish(&c->last);
    c->have_last = false;
    struct db_preps old = c->preps; /* preparations under way still speak of them */
    c->preps = (struct db_preps){0};
    ops_fail(c, "PostgreSQL is not reachable; try again");
    db_preps_finish(&old);
}

/* Its first line. */
static void say_why(const struct db_conn *c, char why[256])
{
    snprintf(why, 256, "%s", c->pg ? PQerrorMessage(c->pg) : "not connected");
    why[strcspn(why, "\n")] = 0;
}

static void conn_lost(struct db_conn *c)
{
    char why[256];
    say_why(c, why);
    db_conn_close(c);
    c->on_down(c, why);
}

static void on_gone(uv_timer_t *t)
{
    if (t->data)
        conn_lost(t->data);
}

/* A second write to a connection that was reset makes libpq close its socket, and what it did not
 * take it never answers: no event will tell, and who is sending must not be called back from
 * inside. */
static void conn_gone(struct db_conn *c)
{
    poll_drop(c);
    if (c->gone)
        return;
    c->gone = det_zalloc(sizeof *c->gone);
    c->gone->data = c;
    uv_timer_init(c->loop, c->gone);
    uv_timer_start(c->gone, on_gone, 0, 0);
}

/* In front of the statement that is the next to be sent. */
static bool send_preparation(struct db_conn *c, struct db_prep *p, const char *sql)
{
    struct db_op *op = det_zalloc(sizeof *op);
    *op = (struct db_op){.next = *c->unsent, .sql = sql, .cb = db_prep_on_answer, .arg = p};
    *c->unsent = op;
    c->unsent = &op->next;
    c->ops++;
    p->state = PREP_SENT;
    p->segment = c->preps.segment;
    return PQsendPrepare(c->pg, p->name, sql, 0, NULL) == 1;
}

static bool send_stmt(struct db_conn *c, struct db_op *op)
{
    const struct db_stmt *s = op->stmt;
    struct db_prep *p = db_prep_of(&c->preps, op->sql);
    if (p->state == PREP_NONE && !c->is_plain && !send_preparation(c, p, op->sql))
        return false;
    c->unflushed += s->bytes + sizeof *s;
    if (!db_prep_is_usable(&c->preps, p))
        return PQsendQueryParams(c->pg, s->sql, s->n, NULL, s->v, s->len, s->format, 0) == 1;
    op->prep = p;
    return PQsendQueryPrepared(c->pg, p->name, s->n, s->v, s->len, s->format, 0) == 1;
}

/* false: libpq has not taken it, for want of memory perhaps. Nothing that comes after it may be
 * sent, a COMMIT least of all, and its answer never comes: the connection's end answers it. */
static bool op_send(struct db_conn *c)
{
    struct db_op *op = *c->unsent;
    bool is_taken;
    if (op->sql) {
        is_taken = send_stmt(c, op);
    } else {
        c->preps.segment++;
        is_taken = PQpipelineSync(c->pg) == 1;
    }
    c->unsent = &op->next;
    if (!op->is_lent)
        free(det_take(op->stmt));
    return is_taken;
}

/* Sends what waits, until the socket takes no more: what libpq holds by then it never gives
 * back. */
static void conn_flush(struct db_conn *c)
{
    int rc;
    bool is_taken = !c->gone;
    while (is_taken && (rc = PQflush(c->pg)) == 0 && *c->unsent) {
        c->unflushed = 0;
        while (is_taken && *c->unsent && c->unflushed < UNFLUSHED_MAX)
            is_taken = op_send(c);
    }
    if (!is_taken || PQsocket(c->pg) < 0)
        conn_gone(c);
    else
        poll_for(c, rc == 1 ? UV_READABLE | UV_WRITABLE : UV_READABLE);
}

static int conn_ready(struct db_conn *c)
{
    if (PQsetnonblocking(c->pg, 1) != 0 || PQenterPipelineMode(c->pg) != 1)
        return DET_EUNAVAIL;
    c->state = CONN_UP;
    c->unsent = &c->head;
    poll_for(c, UV_READABLE);
    return 0;
}

static void on_connecting(struct db_conn *c)
{
    switch ((int)PQconnectPoll(c->pg)) {
    case PGRES_POLLING_READING: poll_for(c, UV_READABLE); return;
    case PGRES_POLLING_WRITING: poll_for(c, UV_WRITABLE); return;
    case PGRES_POLLING_OK:
        if (conn_ready(c) == 0) {
            c->on_up(c);
            return;
        }
        break;
    default: break;
    }
    conn_lost(c);
}

/* A statement's result is handed on at the NULL that ends it. */
static void op_done(struct db_conn *c)
{
    struct db_op *op = op_pop(c);
    struct db_result r = c->last;
    c->have_last = false;
    if (op->prep)
        db_prep_on_use(op->prep, &r);
    if (op->cb)
        op->cb(op->arg, &r);
    db_result_finish(&r);
    op_free(op);
}

static void sync_done(struct db_conn *c)
{
    struct db_op *op = op_pop(c);
    struct db_result r = c->last;
    bool failed = c->have_last;
    c->have_last = false;
    if (op->cb)
        op->cb(op->arg, failed ? &r : NULL);
    if (failed)
        db_result_finish(&r);
    op_free(op);
}

static void take_result(struct db_conn *c, PGresult *pg)
{
    if (!pg) {
        if (c->have_last && c->head->sql)
            op_done(c);
        return;
    }
    if (PQresultStatus(pg) == PGRES_PIPELINE_SYNC && !c->head->sql) {
        PQclear(pg);
        sync_done(c);
        return;
    }
    if (c->have_last)
        db_result_finish(&c->last);
    db_result_init(&c->last, pg, c->head->sql ? c->head->sql : "COMMIT");
    c->have_last = true;
}

static void read_results(struct db_conn *c)
{
    c->quiet = 0;
    if (!PQconsumeInput(c->pg)) {
        conn_lost(c);
        return;
    }
    while (c->state == CONN_UP && !c->gone && c->head != *c->unsent && !PQisBusy(c->pg)) {
        take_result(c, PQgetResult(c->pg));
        if (c->state == CONN_UP && PQstatus(c->pg) == CONNECTION_BAD)
            break;
    }
    if (c->state == CONN_UP && PQstatus(c->pg) == CONNECTION_BAD)
        conn_lost(c);
}

static void on_socket(uv_poll_t *h, int status, int events)
{
    struct db_conn *c = h->data;
    if (!c)
        return;
    if (c->state == CONN_CONNECTING) {
        on_connecting(c);
        return;
    }
    if (events & UV_READABLE || status < 0)
        read_results(c);
    if (c->state == CONN_UP)
        conn_flush(c);
}

bool db_conn_tick(struct db_conn *c, int most)
{
    bool waits = c->state == CONN_CONNECTING || (c->state == CONN_UP && c->ops > 0);
    if (!waits || ++c->quiet <= most)
        return false;
    db_conn_close(c);
    c->on_down(c, "PostgreSQL does not answer");
    return true;
}

int db_conn_open(struct db_conn *c, const char *conninfo, struct det_err *err)
{
    c->pg = PQconnectStart(conninfo);
    if (!c->pg || PQstatus(c->pg) == CONNECTION_BAD || PQsocket(c->pg) < 0) {
        char why[256];
        say_why(c, why);
        PQfinish(c->pg);
        c->pg = NULL;
        return det_fail(err, DET_EUNAVAIL, "%s", why);
    }
    c->state = CONN_CONNECTING;
    c->quiet = 0;
    poll_for(c, UV_WRITABLE);
    return 0;
}

int db_conn_adopt(struct db_conn *c, PGconn *pg)
{
    c->pg = pg;
    return conn_ready(c);
}

void db_conn_send(struct db_conn *c, struct db_stmt *s, db_op_cb *cb, void *arg)
{
    op_push(c, s->sql, cb, arg)->stmt = s;
}

void db_conn_lend(struct db_conn *c, struct db_stmt *s, db_op_cb *cb, void *arg)
{
    struct db_op *op = op_push(c, s->sql, cb, arg);
    op->stmt = s;
    op->is_lent = true;
}

void db_conn_sync(struct db_conn *c, db_op_cb *cb, void *arg)
{
    op_push(c, NULL, cb, arg);
    conn_flush(c);
}
