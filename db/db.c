#include "db.h"

#include "db_conn.h"
#include "db_group.h"
#include "mem.h"

#include <stdio.h>
#include <string.h>

enum { READERS_MAX = 8, BACKOFF_MIN_MS = 50, BACKOFF_MAX_MS = 2000, LEAD_RETRY_MS = 200 };
/* Any number will do as long as every master uses the same. */
#define LEADER_LOCK "SELECT pg_advisory_lock(4919001)"
#define LEADER_TRY  "SELECT pg_try_advisory_lock(4919001), (SELECT epoch FROM cluster)"

struct link { /* a connection and its way back up */
    struct db *db;
    struct db_conn conn;
    uv_timer_t timer;
    int backoff_ms;
    bool usable; /* up, and for the writer: leading */
};

struct deferred {
    struct deferred *next;
    db_cb *cb;
    void *arg;
    struct db_result result;
};

struct db {
    uv_loop_t *loop;
    char *conninfo, *read_conninfo;
    PGconn *start; /* the blocking connection until db_start */
    struct link writer, readers[READERS_MAX];
    int readers_n;
    struct db_group group;
    struct deferred *deferred, **deferred_end;
    uv_timer_t kick; /* 0 ms: runs in the next iteration, after everything of this one gathered */
    struct db_options o;
    bool closing;
    int handles; /* open timers */
    void (*on_closed)(void *arg);
    void *closed_arg;
};

static void link_dial(struct link *l);

static void on_kick(uv_timer_t *t)
{
    struct db *db = t->data;
    struct deferred *d = db->deferred;
    db->deferred = NULL;
    db->deferred_end = &db->deferred;
    while (d) {
        struct deferred *next = d->next;
        d->cb(d->arg, &d->result);
        free(d);
        d = next;
    }
    if (!db->closing && db->writer.usable)
        db_group_kick(&db->group);
}

static void kick(struct db *db)
{
    if (!uv_is_active((uv_handle_t *)&db->kick))
        uv_timer_start(&db->kick, on_kick, 0, 0);
}

static void defer_fail(struct db *db, db_cb *cb, void *arg, int code, const char *text)
{
    if (!cb)
        return;
    struct deferred *d = det_zalloc(sizeof *d);
    d->cb = cb;
    d->arg = arg;
    db_result_fail(&d->result, code, text);
    *db->deferred_end = d;
    db->deferred_end = &d->next;
    kick(db);
}

/* Connections that come and go. */

static void on_redial(uv_timer_t *t)
{
    link_dial(t->data);
}

static void link_wait(struct link *l)
{
    if (l->db->closing)
        return;
    uv_timer_start(&l->timer, on_redial, (uint64_t)l->backoff_ms, 0);
    l->backoff_ms = l->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : l->backoff_ms * 2;
}

static void link_dial(struct link *l)
{
    bool writer = l == &l->db->writer;
    if (db_conn_open(&l->conn, writer ? l->db->conninfo : l->db->read_conninfo) < 0)
        link_wait(l);
}

static void link_usable(struct link *l)
{
    l->usable = true;
    l->backoff_ms = BACKOFF_MIN_MS;
    if (l != &l->db->writer)
        return;
    if (l->db->o.on_state)
        l->db->o.on_state(l->db->o.arg, true);
    kick(l->db);
}

static void link_down(struct link *l)
{
    bool was = l->usable;
    l->usable = false;
    if (l == &l->db->writer) {
        db_group_fail(&l->db->group, DET_EUNAVAIL, "PostgreSQL is not reachable; try again");
        if (was && l->db->o.on_state && !l->db->closing)
            l->db->o.on_state(l->db->o.arg, false);
    }
    link_wait(l);
}

static void on_down(struct db_conn *c, const char *why)
{
    link_down(c->owner);
}

static void lead_again(struct link *l);

static void on_relead(uv_timer_t *t)
{
    struct link *l = t->data;
    if (l->conn.state == CONN_UP)
        lead_again(l);
}

/* After a reconnect the lock may still be held by our own lost session for a moment: try again; but
 * when the epoch moved on, another master leads. */
static void on_lead(void *arg, const struct db_result *r)
{
    struct link *l = arg;
    if (db_rc(r) < 0 || db_rows(r) != 1) {
        if (l->conn.state == CONN_UP) {
            db_conn_close(&l->conn);
            link_down(l);
        }
        return;
    }
    if (db_i64(r, 0, 1) != l->db->group.epoch) {
        l->db->o.on_deposed(l->db->o.arg);
        return;
    }
    if (db_bool(r, 0, 0))
        link_usable(l);
    else
        uv_timer_start(&l->timer, on_relead, LEAD_RETRY_MS, 0);
}

static void lead_again(struct link *l)
{
    struct db_stmt *s = db_stmt_create(LEADER_TRY, NULL);
    db_conn_send(&l->conn, s, on_lead, l);
    free(s);
    db_conn_sync(&l->conn, NULL, NULL);
}

static void on_up(struct db_conn *c)
{
    struct link *l = c->owner;
    if (l == &l->db->writer)
        lead_again(l);
    else
        link_usable(l);
}

static void link_init(struct link *l, struct db *db)
{
    l->db = db;
    l->backoff_ms = BACKOFF_MIN_MS;
    l->conn = (struct db_conn){
        .loop = db->loop, .fd = -1, .owner = l, .on_up = on_up, .on_down = on_down};
    uv_timer_init(db->loop, &l->timer);
    l->timer.data = l;
    db->handles++;
}

static void on_deposed(void *arg)
{
    struct db *db = arg;
    db->writer.usable = false;
    db->o.on_deposed(db->o.arg);
}

static void on_idle(void *arg)
{
    kick(arg);
}

/* The start. */

static void ignore_notice(void *arg, const PGresult *r)
{
}

static int start_connect(struct db *db, struct det_err *err)
{
    db->start = PQconnectdb(db->conninfo);
    PQsetNoticeReceiver(db->start, ignore_notice, NULL);
    if (PQstatus(db->start) != CONNECTION_OK)
        return det_fail(err, DET_EUNAVAIL, "connect to PostgreSQL (--db): %s",
                        PQerrorMessage(db->start));
    return 0;
}

static void on_try(void *arg, const struct db_result *r)
{
    if (db_rows(r) == 1)
        *(bool *)arg = db_bool(r, 0, 0);
}

static void on_epoch(void *arg, const struct db_result *r)
{
    if (db_rows(r) == 1)
        ((struct db *)arg)->group.epoch = db_i64(r, 0, 0);
}

static int start_lead(struct db *db, void (*on_wait)(void *arg), struct det_err *err)
{
    bool locked = false;
    int rc = db_query_now(db, LEADER_TRY, NULL, on_try, &locked, err);
    if (rc == 0 && !locked) {
        if (on_wait)
            on_wait(db->o.arg);
        rc = db_query_now(db, LEADER_LOCK, NULL, NULL, NULL, err);
    }
    if (rc == 0)
        rc = db_query_now(db, "UPDATE cluster SET epoch = epoch + 1 RETURNING epoch", NULL,
                          on_epoch, db, err);
    if (rc == 0 && db->group.epoch == 0)
        rc = det_fail(err, DET_ESTATE, "the database has no cluster row; it was never migrated");
    return rc;
}

static void db_init(struct db *db, uv_loop_t *loop, const struct db_options *o)
{
    db->loop = loop;
    db->o = *o;
    db->conninfo = det_strdup(o->conninfo);
    db->read_conninfo = det_strdup(o->conninfo);
    db->readers_n = o->readers > 0 && o->readers <= READERS_MAX ? o->readers : 2;
    db->deferred_end = &db->deferred;
    db->group = (struct db_group){
        .conn = &db->writer.conn, .on_deposed = on_deposed, .on_idle = on_idle, .arg = db};
}

int db_create(uv_loop_t *loop, const struct db_options *o, void (*on_wait)(void *arg),
              struct db **ret, struct det_err *err)
{
    struct db *db = det_zalloc(sizeof *db);
    db_init(db, loop, o);
    int rc = start_connect(db, err);
    if (rc == 0)
        rc = start_lead(db, on_wait, err);
    if (rc < 0) {
        PQfinish(db->start);
        free(db->conninfo);
        free(db->read_conninfo);
        free(db);
        return rc;
    }
    *ret = db;
    return 0;
}

int db_query_now(struct db *db, const char *sql, const struct db_args *args, db_cb *cb, void *arg,
                 struct det_err *err)
{
    det_cleanup(freep) struct db_stmt *s = db_stmt_create(sql, args);
    struct db_result r;
    db_result_init(&r, PQexecParams(db->start, sql, s->n, NULL, s->v, s->len, s->format, 0), sql);
    int rc = r.rc;
    if (rc < 0 && err)
        *err = r.err;
    else if (cb)
        cb(arg, &r);
    db_result_finish(&r);
    return rc;
}

static int link_adopt(struct link *l, PGconn *pg, struct det_err *err)
{
    if (PQstatus(pg) != CONNECTION_OK || db_conn_adopt(&l->conn, pg) < 0)
        return det_fail(err, DET_EUNAVAIL, "PostgreSQL went away while starting: %s",
                        PQerrorMessage(pg));
    l->usable = true;
    return 0;
}

int db_start(struct db *db, struct det_err *err)
{
    uv_timer_init(db->loop, &db->kick);
    db->kick.data = db;
    db->handles++;
    link_init(&db->writer, db);
    int rc = link_adopt(&db->writer, det_take(db->start), err);
    for (int i = 0; i < db->readers_n; i++) {
        link_init(&db->readers[i], db);
        if (rc == 0)
            rc = link_adopt(&db->readers[i], PQconnectdb(db->read_conninfo), err);
    }
    return rc;
}

/* Work. */

static struct link *reader_pick(struct db *db)
{
    struct link *best = NULL;
    for (int i = 0; i < db->readers_n; i++) {
        struct link *l = &db->readers[i];
        if (l->usable && (!best || l->conn.ops < best->conn.ops))
            best = l;
    }
    return best;
}

void db_query(struct db *db, const char *sql, const struct db_args *args, db_cb *cb, void *arg)
{
    struct link *l = db->closing ? NULL : reader_pick(db);
    if (!l) {
        defer_fail(db, cb, arg, DET_EUNAVAIL, "PostgreSQL is not reachable; try again");
        return;
    }
    det_cleanup(freep) struct db_stmt *s = db_stmt_create(sql, args);
    db_conn_send(&l->conn, s, cb, arg);
    db_conn_sync(&l->conn, NULL, NULL);
}

struct db_tx *db_tx_begin(struct db *db)
{
    struct db_tx *tx = det_zalloc(sizeof *tx);
    tx->db = db;
    return tx;
}

void db_tx_add(struct db_tx *tx, const char *sql, const struct db_args *args)
{
    if (tx->n == tx->cap) {
        tx->cap = tx->cap ? tx->cap * 2 : 4;
        tx->stmts = det_reallocarray(tx->stmts, tx->cap, sizeof *tx->stmts);
    }
    tx->stmts[tx->n] = db_stmt_create(sql, args);
    tx->bytes += tx->stmts[tx->n]->bytes;
    tx->n++;
}

size_t db_tx_size(const struct db_tx *tx)
{
    return tx->n;
}

void db_tx_drop(struct db_tx *tx)
{
    db_tx_free(tx);
}

void db_tx_commit(struct db_tx *tx, db_cb *cb, void *arg)
{
    struct db *db = tx->db;
    bool full = db->group.bytes + tx->bytes > DB_PENDING_BYTES_MAX;
    if (db->closing || !db->writer.usable || full) {
        defer_fail(db, cb, arg, DET_EUNAVAIL,
                   full ? "too much is waiting to be written; try again"
                        : "PostgreSQL is not reachable; try again");
        db_tx_free(tx);
        return;
    }
    tx->cb = cb;
    tx->arg = arg;
    db_group_push(&db->group, tx);
    kick(db);
}

void db_write(struct db *db, const char *sql, const struct db_args *args, db_cb *cb, void *arg)
{
    struct db_tx *tx = db_tx_begin(db);
    db_tx_add(tx, sql, args);
    db_tx_commit(tx, cb, arg);
}

int64_t db_epoch(const struct db *db)
{
    return db->group.epoch;
}

bool db_is_up(const struct db *db)
{
    return db->writer.usable;
}

/* The end. */

static void db_free(struct db *db)
{
    void (*done)(void *) = db->on_closed;
    void *arg = db->closed_arg;
    PQfinish(db->start);
    free(db->conninfo);
    free(db->read_conninfo);
    free(db);
    if (done)
        done(arg);
}

static void on_handle_closed(uv_handle_t *h)
{
    struct link *l = h->data;
    struct db *db = l->db;
    if (--db->handles == 0)
        db_free(db);
}

static void link_close(struct link *l)
{
    l->usable = false;
    db_conn_close(&l->conn);
    uv_close((uv_handle_t *)&l->timer, on_handle_closed);
}

void db_close(struct db *db, void (*on_closed)(void *arg), void *arg)
{
    db->closing = true;
    db->on_closed = on_closed;
    db->closed_arg = arg;
    if (db->start) { /* never started: nothing is on the loop */
        db_free(db);
        return;
    }
    for (int i = 0; i < db->readers_n; i++)
        link_close(&db->readers[i]);
    db_group_fail(&db->group, DET_ECANCELED, "the master is stopping");
    link_close(&db->writer);
    on_kick(&db->kick);
    db->kick.data = &db->writer;
    uv_close((uv_handle_t *)&db->kick, on_handle_closed);
}
