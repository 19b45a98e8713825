/* Connections that come and go, the start and the end, and writing. */
#include "db_impl.h"

#include "mem.h"

enum { BACKOFF_MIN_MS = 50, BACKOFF_MAX_MS = 2000 };
/* A connection is given up when nothing came for so long: a little more than a statement may take,
 * so that the server's own refusal comes first. Dialling takes less. */
enum { WATCH_MS = 1000, QUIET_READ_S = 40, QUIET_WRITE_S = 75, QUIET_DIAL_S = 10 };

/* A lock that somebody holds, a statement that never ends and a client that is gone must not hold
 * up the others. Estimates of functions that return rows are high: each would be compiled for 100
 * ms to run for one. A plan for each read's own arguments takes longer to make than to run: what
 * would be planned differently for some are statements of their own. None is worth starting
 * processes for. Times are shown as db_doc.h reads them. A commit waits for the disk, whatever the
 * server, the database or the role say. */
#define SETTINGS(statement_ms, plans)                                                              \
    "SELECT set_config(s.name, v.value, false) FROM pg_settings s JOIN (VALUES "                   \
    "('lock_timeout', '2000'), ('statement_timeout', '" statement_ms "'), "                        \
    "('client_connection_check_interval', '1000'), ('jit', 'off'), "                               \
    "('max_parallel_workers_per_gather', '0'), ('TimeZone', 'UTC'), ('DateStyle', 'ISO'), "        \
    "('synchronous_commit', 'on'), "                                                               \
    "('plan_cache_mode', '" plans "')) v(name, value) "                                            \
    "ON s.name = v.name"
#define SETTINGS_WRITE SETTINGS("60000", "auto")
#define COMMIT_AHEAD   "SET synchronous_commit = off" /* db_flush.h waits for it */
#define SETTINGS_READ  SETTINGS("30000", "force_generic_plan")
#define SETTINGS_SEARCH                                                                            \
    SETTINGS("10000", "force_generic_plan") /* db_query_search() tells of it                       \
                                             */
#define SETTINGS_CHART SETTINGS("10000", "force_generic_plan")

static void link_dial(struct db_link *l);

/* Connections. */

static void on_redial(uv_timer_t *t)
{
    link_dial(t->data);
}

static void link_wait(struct db_link *l)
{
    if (l->db->closing)
        return;
    uv_timer_start(&l->timer, on_redial, (uint64_t)l->backoff_ms, 0);
    l->backoff_ms = l->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : l->backoff_ms * 2;
}

static void link_dial(struct db_link *l)
{
    bool writer = l == &l->db->writer;
    if (db_conn_open(&l->conn, writer ? l->db->conninfo : l->db->read_conninfo, NULL) < 0)
        link_wait(l);
}

static void tell_state(struct db *db)
{
    bool up = db_is_up(db);
    if (up == db->told_up || db->closing)
        return;
    db->told_up = up;
    if (db->o.on_state)
        db->o.on_state(db->o.arg, up);
}

static void link_usable(struct db_link *l)
{
    l->usable = true;
    l->backoff_ms = BACKOFF_MIN_MS;
    tell_state(l->db);
    db_kick(l->db);
    db_reads_send(l->db);
    db_kept_send_all(l->db);
}

static void link_down(struct db_link *l)
{
    struct db_link *writer = &l->db->writer;
    l->usable = false;
    if (l == &l->db->writer || l == &l->db->flusher) {
        db_group_fail(&l->db->group, DET_EUNAVAIL, DB_UNREACHABLE);
        tell_state(l->db);
    }
    link_wait(l);
    /* The next flusher may be of a server that has crashed since, and could not vouch for what is
     * in flight here. */
    if (l == &l->db->flusher && writer->conn.state != CONN_DOWN) {
        db_conn_close(&writer->conn);
        link_down(writer);
    }
}

static void on_down(struct db_conn *c, const char *why)
{
    link_down(c->owner);
}

/* After a reconnect: when the epoch moved on, another master leads. */
static void on_join(void *arg, const struct db_result *r)
{
    struct db_link *l = arg;
    if (db_rows(r) == 1 && db_i64(r, 0, LEAD_JOIN_EPOCH) == l->db->group.epoch) {
        link_usable(l);
    } else if (db_rows(r) == 1) {
        l->db->o.on_deposed(l->db->o.arg);
    } else if (l->conn.state == CONN_UP) {
        db_conn_close(&l->conn);
        link_down(l);
    }
}

static void link_send(struct db_link *l, const char *sql, db_op_cb *cb)
{
    db_conn_send(&l->conn, db_stmt_create(sql, NULL), cb, l);
    db_conn_sync(&l->conn, NULL, NULL);
}

/* The i-th connection that reads; NULL: there are no more. */
static struct db_link *link_reading(struct db *db, int i)
{
    int search = i - db->readers_n, chart = search - DB_SEARCHERS;
    return search < 0              ? &db->readers[i]
           : search < DB_SEARCHERS ? &db->searchers[search]
           : chart < DB_CHARTS     ? &db->charts[chart]
                                   : NULL;
}

static bool is_search(const struct db_link *l)
{
    return l >= l->db->searchers && l < l->db->searchers + DB_SEARCHERS;
}

static bool is_chart(const struct db_link *l)
{
    return l >= l->db->charts && l < l->db->charts + DB_CHARTS;
}

static void link_settings(struct db_link *l)
{
    const char *sql = l == &l->db->writer ? SETTINGS_WRITE
                      : is_search(l)      ? SETTINGS_SEARCH
                      : is_chart(l)       ? SETTINGS_CHART
                                          : SETTINGS_READ;
    link_send(l, sql, NULL);
    if (l == &l->db->writer)
        link_send(l, COMMIT_AHEAD, NULL);
}

static void on_up(struct db_conn *c)
{
    struct db_link *l = c->owner;
    bool writer = l == &l->db->writer;
    link_settings(l);
    if (writer)
        link_send(l, LEAD_JOIN, on_join);
    else
        link_usable(l);
}

static void link_watch(struct db_link *l, int most)
{
    db_conn_tick(&l->conn, l->conn.state == CONN_CONNECTING ? QUIET_DIAL_S : most);
}

static void on_watch(uv_timer_t *t)
{
    struct db *db = t->data;
    link_watch(&db->writer, QUIET_WRITE_S);
    link_watch(&db->flusher, QUIET_WRITE_S);
    for (int i = 0; link_reading(db, i); i++)
        link_watch(link_reading(db, i), QUIET_READ_S);
    db_reads_forget(db, false);
    db_reads_send(db); /* what was held may go now */
    db_kept_send_all(db);
}

static void read_give_up(struct db_link *l)
{
    if (l->conn.state != CONN_UP || l->conn.ops == 0)
        return;
    db_conn_close(&l->conn);
    link_down(l);
}

/* A read may be asked again, so none waits for a PostgreSQL that hangs. */
static void reads_give_up(struct db *db)
{
    for (int i = 0; link_reading(db, i); i++)
        read_give_up(link_reading(db, i));
}

static void on_stalled(void *arg, bool is_stalled)
{
    struct db *db = arg;
    db->stalled = is_stalled;
    tell_state(db);
    if (is_stalled) {
        reads_give_up(db);
        return;
    }
    db_kick(db);
    db_kept_send_all(db);
}

static void link_init(struct db_link *l, struct db *db)
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
    db_kick_group(arg);
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

/* The loop runs meanwhile: a standby serves its own requests. */
static int start_lead(struct db *db, db_wait_cb *on_wait, struct det_err *err)
{
    struct db_lead *l = &db->lead;
    l->conninfo = db->conninfo;
    l->url = db->o.url ? db->o.url : "";
    l->on_wait = on_wait;
    l->wait_arg = db->o.arg;
    l->on_authority = db->o.on_authority;
    l->on_stalled = on_stalled;
    l->on_deposed = on_deposed;
    l->arg = db;
    db_lead_begin(l, db->loop);
    db->handles++;
    while (!l->epoch && !l->is_refused)
        uv_run(db->loop, UV_RUN_ONCE);
    if (l->is_refused)
        return det_fail(err, l->err.code, "%s", l->err.text);
    db->group.epoch = l->epoch;
    return 0;
}

static int start_session(struct db *db, struct det_err *err)
{
    int rc = start_connect(db, err);
    if (rc == 0)
        rc = db_query_now(db, SETTINGS_WRITE, NULL, NULL, NULL, err);
    return rc == 0 ? db_query_now(db, LEAD_JOIN, NULL, NULL, NULL, err) : rc;
}

static void db_init(struct db *db, uv_loop_t *loop, const struct db_options *o)
{
    db->loop = loop;
    db->o = *o;
    db->conninfo = det_strdup(o->conninfo);
    db->read_conninfo = det_strdup(o->conninfo);
    db->readers_n = o->readers > 0 && o->readers <= DB_READERS_MAX ? o->readers : 2;
    db->deferred_end = &db->deferred;
    db_reads_init(db);
    db->group = (struct db_group){.on_deposed = on_deposed, .on_idle = on_idle, .arg = db};
    db_group_init(&db->group, &db->writer.conn, &db->flusher.conn);
}

int db_create(uv_loop_t *loop, const struct db_options *o, db_wait_cb *on_wait, struct db **ret,
              struct det_err *err)
{
    struct db *db = det_zalloc(sizeof *db);
    db_init(db, loop, o);
    int rc = start_lead(db, on_wait, err);
    if (rc == 0)
        rc = start_session(db, err);
    if (rc == 0)
        *ret = db;
    else
        db_close(db, NULL, NULL);
    return rc;
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

static int link_adopt(struct db_link *l, PGconn *pg, struct det_err *err)
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
    uv_timer_init(db->loop, &db->watch);
    db->kick.data = db->watch.data = db;
    db->handles += 2;
    db->is_started = db->told_up = true;
    uv_timer_start(&db->watch, on_watch, WATCH_MS, WATCH_MS);
    link_init(&db->writer, db);
    link_init(&db->flusher, db);
    int rc = link_adopt(&db->writer, det_take(db->start), err);
    if (rc == 0)
        link_settings(&db->writer);
    if (rc == 0)
        rc = link_adopt(&db->flusher, PQconnectdb(db->conninfo), err);
    if (rc == 0)
        link_settings(&db->flusher);
    for (int i = 0; link_reading(db, i); i++) {
        struct db_link *l = link_reading(db, i);
        link_init(l, db);
        if (rc == 0)
            rc = link_adopt(l, PQconnectdb(db->read_conninfo), err);
        if (rc == 0)
            link_settings(l);
    }
    return rc;
}

/* Writing. */

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

void db_tx_many(struct db_tx *tx, const char *sql)
{
    tx->many = sql;
}

void db_tx_quiet(struct db_tx *tx)
{
    tx->is_quiet = true;
}

void db_tx_validates(struct db_tx *tx)
{
    tx->is_quiet = tx->validates = true;
}

void db_tx_apart(struct db_tx *tx)
{
    tx->is_apart = true;
}

size_t db_tx_size(const struct db_tx *tx)
{
    return tx->n;
}

void db_tx_fence(struct db_tx *tx)
{
    db_tx_add(tx, "SELECT 1", DB_ARGS); /* the group's epoch check goes before it */
}

void db_tx_commit(struct db_tx *tx, db_cb *cb, void *arg)
{
    struct db *db = tx->db;
    bool full = db->group.bytes + db->group.unanswered + tx->bytes > DB_PENDING_BYTES_MAX;
    if (db->closing || !db_is_up(db) || full) {
        db_fail_later(db, cb, arg, DET_EUNAVAIL,
                      full ? "too much is waiting to be written; try again" : DB_UNREACHABLE);
        db_tx_free(tx);
        return;
    }
    tx->cb = cb;
    tx->arg = arg;
    db_group_push(&db->group, tx);
    db_kick(db);
}

void db_write(struct db *db, const char *sql, const struct db_args *args, db_cb *cb, void *arg)
{
    struct db_tx *tx = db_tx_begin(db);
    db_tx_add(tx, sql, args);
    db_tx_commit(tx, cb, arg);
}

void db_write_quiet(struct db *db, const char *sql, const struct db_args *args, db_cb *cb,
                    void *arg)
{
    struct db_tx *tx = db_tx_begin(db);
    db_tx_add(tx, sql, args);
    db_tx_quiet(tx);
    db_tx_commit(tx, cb, arg);
}

bool db_has_reported(const struct db *db, int64_t trial, int64_t run, int64_t steps)
{
    return db_reported_has(&db->reported, trial, run, steps);
}

void db_note_reported(struct db *db, int64_t trial, int64_t run, int64_t steps)
{
    db_reported_note(&db->reported, trial, run, steps);
}

int64_t db_epoch(const struct db *db)
{
    return db->group.epoch;
}

void db_stats(const struct db *db, struct db_stats *ret)
{
    *ret = db->group.stats;
    ret->waiting_bytes = db->group.bytes;
}

bool db_is_up(const struct db *db)
{
    return db->writer.usable && db->flusher.usable && !db->stalled;
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
    struct db *db = h->data;
    if (--db->handles == 0)
        db_free(db);
}

static void timer_close(struct db *db, uv_timer_t *t)
{
    t->data = db;
    uv_close((uv_handle_t *)t, on_handle_closed);
}

static void link_close(struct db_link *l)
{
    l->usable = false;
    db_conn_close(&l->conn);
    timer_close(l->db, &l->timer);
}

void db_close(struct db *db, void (*on_closed)(void *arg), void *arg)
{
    db->closing = true;
    db->on_closed = on_closed;
    db->closed_arg = arg;
    db_lead_end(&db->lead);
    timer_close(db, &db->lead.timer);
    if (!db->is_started)
        return;
    for (int i = 0; link_reading(db, i); i++)
        link_close(link_reading(db, i));
    db_group_fail(&db->group, DET_ECANCELED, "the master is stopping");
    link_close(&db->writer);
    link_close(&db->flusher);
    db_kept_fail(db);
    db_run_deferred(db);
    db_reads_forget(db, true);
    timer_close(db, &db->kick);
    timer_close(db, &db->watch);
}
