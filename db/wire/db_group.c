#include "db_group.h"

#include "clk.h"
#include "db_many.h"
#include "failpoint.h"
#include "mem.h"

#include <string.h>

static void group_run(struct db_group *g);

void db_tx_free(struct db_tx *tx)
{
    for (size_t i = 0; i < tx->n; i++)
        free(tx->stmts[i]);
    free(tx->stmts);
    db_result_finish(&tx->result);
    free(tx);
}

static void tx_answer(struct db_tx *tx)
{
    if (tx->cb)
        tx->cb(tx->arg, &tx->result);
    db_tx_free(tx);
}

/* Keeps the last statement's result, or the first failure's. Takes r's PGresult by copy of status:
 * the connection clears its own, so rows are moved over here. */
static void tx_keep(struct db_tx *tx, const struct db_result *r)
{
    if (tx->result.rc < 0)
        return;
    db_result_finish(&tx->result);
    tx->result = *r;
    tx->result.index = tx->answered++;
    ((struct db_result *)r)->pg = NULL; /* ours now; the connection finishes a NULL */
}

static void on_unit_stmt(void *arg, const struct db_result *r)
{
    tx_keep(arg, r);
}

static void tx_fail(struct db_tx *tx, int code, const char *why)
{
    db_result_finish(&tx->result);
    db_result_fail(&tx->result, code, why);
}

static void on_epoch(void *arg, const struct db_result *r)
{
    struct db_group *g = arg;
    if (r->rc < 0)
        g->failed = true;
    if (db_state(r) == DB_STATE_DEPOSED)
        g->on_deposed(g->arg);
}

/* Units that go alone wait but a moment for a lock: one that somebody holds must not keep all the
 * others, each in its turn, from being written. */
static void send_epoch(struct db_group *g)
{
    static const char together[] = "SELECT check_epoch($1)";
    static const char few[] =
        "SELECT check_epoch($1), set_config('synchronous_commit', 'on', true)";
    static const char alone[] = "SELECT check_epoch($1), set_config('lock_timeout', '100', true)";
    const char *sql = g->alone ? alone : g->waits ? few : together;
    db_conn_send(g->conn, db_stmt_create(sql, db_i64_arg(DB_ARGS, g->epoch)), on_epoch, g);
}

static void tx_send(struct db_group *g, struct db_tx *tx)
{
    for (size_t i = 0; i < tx->n; i++)
        db_conn_lend(g->conn, tx->stmts[i], on_unit_stmt, tx);
}

/* A dying server sends what it has, the FATAL error last: answers without the sync that follows
 * them say nothing of the commit. Nor does "done already" (db_batch_is_done): what it saw may not
 * be on disk. */
static void tx_lost(struct db_tx *tx)
{
    bool is_done = db_state(&tx->result) == DB_STATE_DONE;
    if (tx->result.rc >= 0 || tx->result.rc == DET_ECANCELED || is_done)
        tx_fail(tx, DET_EUNAVAIL, "the connection to PostgreSQL was lost in mid-commit; try again");
}

static void on_flushed(void *arg, struct db_tx *tx, bool ok)
{
    struct db_group *g = arg;
    hist_add(&g->stats.commit, clk_mono_us() - tx->sent_us);
    while (tx) {
        struct db_tx *next = tx->next;
        if (!ok)
            tx_lost(tx);
        g->unanswered -= tx->bytes;
        g->changes += !tx->is_quiet;
        g->validations += tx->validates;
        tx_answer(tx);
        tx = next;
    }
}

static void flight_end(struct db_group *g)
{
    struct db_tx *list = g->flight;
    /* What failed has waited for nothing, and what it found there may not be on disk yet. */
    bool is_on_disk = g->waits && !g->failed && db_flush_is_idle(&g->flush);
    g->flight = NULL;
    g->units = 0;
    g->on_idle(g->arg);
    if (is_on_disk)
        on_flushed(g, list, true);
    else
        db_flush_push(&g->flush, list);
}

/* failed: the error of the commit itself, or NULL. */
static void alone_settle(struct db_group *g, struct db_tx *tx, const struct db_result *failed)
{
    if (g->conn->state != CONN_UP)
        tx_lost(tx);
    else if (tx->result.rc == DET_ECANCELED) /* by the epoch check: not the unit's own failure */
        tx_fail(tx, DET_EUNAVAIL, "the leadership could not be checked; try again");
    else if (failed && tx->result.rc >= 0) {
        tx_fail(tx, failed->rc, failed->err.text);
        memcpy(tx->result.sqlstate, failed->sqlstate, sizeof tx->result.sqlstate);
        memcpy(tx->result.in, failed->in, sizeof tx->result.in);
    }
}

static void on_alone_sync(void *arg, const struct db_result *failed)
{
    struct db_group *g = arg;
    struct db_tx *tx = g->settling;
    g->settling = tx->next;
    alone_settle(g, tx, failed);
    if (--g->flight_left == 0)
        flight_end(g);
}

static void forget_result(struct db_tx *tx)
{
    db_result_finish(&tx->result);
    tx->result = (struct db_result){0};
    tx->answered = 0;
}

/* But for what took longer than a statement may: it would do so again, and hold up the others. */
static void retry_alone(struct db_group *g)
{
    g->alone = g->conn->is_plain = true;
    g->waits = false;
    g->failed = false;
    g->flight_left = g->units;
    g->settling = g->flight;
    for (struct db_tx *tx = g->flight; tx; tx = tx->next)
        if (!db_timed_out(&tx->result) || tx->many)
            forget_result(tx);
    for (struct db_tx *tx = g->flight; tx && g->conn->state == CONN_UP; tx = tx->next) {
        send_epoch(g);
        if (!db_timed_out(&tx->result))
            tx_send(g, tx);
        db_conn_sync(g->conn, on_alone_sync, g);
    }
}

static void flight_lost(struct db_group *g)
{
    for (struct db_tx *tx = g->flight; tx; tx = tx->next)
        tx_lost(tx);
    flight_end(g);
}

/* failed: the connection was lost, or the commit itself failed. */
static void on_group_sync(void *arg, const struct db_result *failed)
{
    struct db_group *g = arg;
    bool lost = g->conn->state != CONN_UP;
    g->failed = g->failed || failed;
    for (struct db_tx *tx = g->flight; tx; tx = tx->next)
        g->failed = g->failed || tx->result.rc < 0;
    g->stats.commits += !g->failed;
    g->stats.commits_failed += g->failed;
    g->stats.units += g->units;
    if (lost)
        flight_lost(g);
    else if (!g->failed)
        flight_end(g);
    else if (g->units == 1 && g->flight->result.rc < 0 && g->flight->result.rc != DET_ECANCELED)
        flight_end(g);
    else
        retry_alone(g);
}

static bool may_join(const struct db_group *g, const struct db_tx *tx)
{
    return g->units == 0 || (!g->flight->is_apart && !tx->is_apart);
}

static void group_take(struct db_group *g)
{
    struct db_tx **end = &g->flight;
    size_t bytes = 0;
    while (g->head && g->units < DB_GROUP_UNITS_MAX && bytes < DB_GROUP_BYTES_MAX &&
           may_join(g, g->head)) {
        struct db_tx *tx = g->head;
        g->head = tx->next;
        tx->next = NULL;
        *end = tx;
        end = &tx->next;
        bytes += tx->bytes;
        g->units++;
    }
    if (!g->head)
        g->tail = NULL;
    g->bytes -= bytes;
    g->unanswered += bytes;
}

static void group_run(struct db_group *g)
{
    g->failed = g->alone = g->conn->is_plain = false;
    group_take(g);
    g->waits = g->units < DB_GROUP_FLUSH_MIN && !g->head;
    g->flight->sent_us = clk_mono_us();
    send_epoch(g);
    for (struct db_tx *tx = g->flight; tx;)
        tx = db_many_send(g->conn, tx, on_unit_stmt);
    db_conn_sync(g->conn, on_group_sync, g);
    FAILPOINT("db.sent");
}

void db_group_kick(struct db_group *g)
{
    if (g->head && !g->flight && g->conn->state == CONN_UP)
        group_run(g);
}

void db_group_push(struct db_group *g, struct db_tx *tx)
{
    tx->next = NULL;
    if (g->tail)
        g->tail->next = tx;
    else
        g->head = tx;
    g->tail = tx;
    g->bytes += tx->bytes;
}

void db_group_init(struct db_group *g, struct db_conn *writer, struct db_conn *flusher)
{
    g->conn = writer;
    g->flush = (struct db_flush){.conn = flusher, .on_flushed = on_flushed, .arg = g};
}

void db_group_fail(struct db_group *g, int code, const char *why)
{
    struct db_tx *tx = g->head;
    g->head = g->tail = NULL;
    g->bytes = 0;
    while (tx) {
        struct db_tx *next = tx->next;
        db_result_fail(&tx->result, code, why);
        tx_answer(tx);
        tx = next;
    }
}
