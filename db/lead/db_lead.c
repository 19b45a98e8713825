#include "db_lead.h"

#include "mem.h"

#include <stdio.h>
#include <string.h>

/* Beats that stayed unanswered: then PostgreSQL hangs; then this session is given up. */
enum { STALLED_AFTER = 6, LOST_AFTER_MS = 15000, BACKOFF_MIN_MS = 50, BACKOFF_MAX_MS = 500 };

#define LOOK                                                                                       \
    "SELECT c.epoch, l.beat, l.url, pg_try_advisory_xact_lock(4919001), "                          \
    "coalesce((SELECT made_at::text FROM authority), '') FROM cluster c, leader l"
/* Unlike a beat it waits for the disk: an epoch must not be given out twice. */
#define TAKE "SELECT take_lead($1::bigint, $2) FROM set_config('synchronous_commit', 'on', true)"
#define BEAT                                                                                       \
    "UPDATE leader SET beat = beat + 1, seen_at = clock_timestamp() "                              \
    "WHERE (SELECT epoch FROM cluster) = $1::bigint"
/* A beat need not survive a crash of the server, and must not wait for its disk. */
#define SETTINGS                                                                                   \
    "SELECT set_config(s.name, v.value, false) FROM pg_settings s JOIN (VALUES "                   \
    "('synchronous_commit', 'off'), ('lock_timeout', '2000'), ('statement_timeout', '10000'), "    \
    "('client_connection_check_interval', '1000')) v(name, value) ON s.name = v.name"

static void on_timer(uv_timer_t *t);

static void arm_timer(struct db_lead *l, int ms)
{
    if (!l->is_closing)
        uv_timer_start(&l->timer, on_timer, (uint64_t)ms, 0);
}

static int period_ms(const struct db_lead *l)
{
    return l->epoch ? LEAD_BEAT_MS : LEAD_POLL_MS;
}

static void send_question(struct db_lead *l, const char *sql, const struct db_args *args,
                          db_op_cb *cb)
{
    l->is_asking = true;
    db_conn_send(&l->conn, db_stmt_create(sql, args), cb, l);
    db_conn_sync(&l->conn, NULL, NULL);
}

static void note_answer(struct db_lead *l)
{
    bool was = l->unanswered >= STALLED_AFTER;
    l->is_asking = false;
    l->unanswered = 0;
    if (was && l->epoch && !l->is_closing)
        l->on_stalled(l->arg, false);
}

/* Leading. */

static void on_beat(void *arg, const struct db_result *r)
{
    struct db_lead *l = arg;
    if (l->conn.state != CONN_UP)
        return;
    note_answer(l);
    if (db_rc(r) == 0 && db_affected(r) == 0)
        l->on_deposed(l->arg);
}

static void send_beat(struct db_lead *l)
{
    send_question(l, BEAT, db_i64_arg(DB_ARGS, l->epoch), on_beat);
}

static void on_join(void *arg, const struct db_result *r)
{
    struct db_lead *l = arg;
    if (l->conn.state != CONN_UP)
        return;
    note_answer(l);
    if (db_rows(r) == 1 && db_i64(r, 0, LEAD_JOIN_EPOCH) != l->epoch)
        l->on_deposed(l->arg);
    else
        send_beat(l); /* at once: sessions that end sooner than a beat is due are no silence */
}

/* Standing by. */

static void on_take(void *arg, const struct db_result *r)
{
    struct db_lead *l = arg;
    if (l->conn.state != CONN_UP)
        return;
    note_answer(l);
    l->epoch = db_rows(r) == 1 ? db_i64(r, 0, 0) : 0;
    lead_probe_reset(&l->probe);
    if (!l->epoch)
        lead_watch_reset(&l->watch);
}

static void leader_seen(struct db_lead *l, const char *url)
{
    if (!strcmp(l->leader_url, url) && l->leader_url[0])
        return;
    snprintf(l->leader_url, sizeof l->leader_url, "%s", url[0] ? url : "an unknown address");
    if (l->on_wait)
        l->on_wait(l->wait_arg, l->leader_url);
}

static void authority_seen(struct db_lead *l, const char *made_at)
{
    if (!l->on_authority || !strcmp(l->authority_at, made_at))
        return;
    if (l->on_authority(l->wait_arg) == 0)
        snprintf(l->authority_at, sizeof l->authority_at, "%s", made_at);
}

/* Asked anew at each look while no session of the leader is left. Nobody else serves at our own
 * address; and without one, nobody served yet. */
static bool is_refused(struct db_lead *l, bool is_vacant, const char *url)
{
    if (!is_vacant)
        lead_probe_reset(&l->probe);
    if (!is_vacant || !url[0] || strcmp(url, l->url) == 0)
        return is_vacant;
    lead_probe_look(&l->probe, url);
    return l->probe.is_refused;
}

static void on_look(void *arg, const struct db_result *r)
{
    struct db_lead *l = arg;
    if (l->conn.state != CONN_UP)
        return;
    note_answer(l);
    if (db_rows(r) != 1) {
        lead_watch_reset(&l->watch);
        return;
    }
    authority_seen(l, db_text(r, 0, 4));
    struct lead_seen seen = {.epoch = db_i64(r, 0, 0),
                             .beat = db_i64(r, 0, 1),
                             .vacant = db_bool(r, 0, 3),
                             .refused = is_refused(l, db_bool(r, 0, 3), db_text(r, 0, 2))};
    if (lead_watch_look(&l->watch, (int64_t)(uv_hrtime() / 1000000), &seen))
        send_question(l, TAKE, db_str_arg(db_i64_arg(DB_ARGS, seen.epoch), l->url), on_take);
    else
        leader_seen(l, db_text(r, 0, 2));
}

/* The session. */

static void on_up(struct db_conn *c)
{
    struct db_lead *l = c->owner;
    l->backoff_ms = BACKOFF_MIN_MS;
    send_question(l, SETTINGS, NULL, NULL);
    if (l->epoch)
        send_question(l, LEAD_JOIN, NULL, on_join);
    else
        send_question(l, LOOK, NULL, on_look);
}

static void on_down(struct db_conn *c, const char *why)
{
    struct db_lead *l = c->owner;
    bool first = !l->backoff_ms;
    l->is_asking = false;
    if (first && !l->epoch) {
        l->is_refused = true;
        det_fail(&l->err, DET_EUNAVAIL, "connect to PostgreSQL (--db): %s", why);
        return;
    }
    if (!l->epoch)
        lead_watch_reset(&l->watch);
    arm_timer(l, l->backoff_ms);
    l->backoff_ms = l->backoff_ms * 2 > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : l->backoff_ms * 2;
}

static void dial_server(struct db_lead *l)
{
    struct det_err err;
    if (db_conn_open(&l->conn, l->conninfo, &err) < 0)
        on_down(&l->conn, err.text);
}

/* Counted by this timer, so that no jump of a clock and no pause of this process looks like a
 * database that hangs. */
static void count_silence(struct db_lead *l)
{
    if (++l->unanswered == STALLED_AFTER && l->epoch)
        l->on_stalled(l->arg, true);
    if (l->unanswered % (LOST_AFTER_MS / period_ms(l)))
        return;
    db_conn_close(&l->conn);
    on_down(&l->conn, "it does not answer");
}

static void on_timer(uv_timer_t *t)
{
    struct db_lead *l = t->data;
    if (l->conn.state == CONN_DOWN)
        dial_server(l);
    else if (l->is_asking || l->conn.state == CONN_CONNECTING)
        count_silence(l);
    else if (l->epoch)
        send_beat(l);
    else
        send_question(l, LOOK, NULL, on_look);
    if (l->conn.state != CONN_DOWN)
        arm_timer(l, period_ms(l));
}

void db_lead_begin(struct db_lead *l, uv_loop_t *loop)
{
    l->conn =
        (struct db_conn){.loop = loop, .fd = -1, .owner = l, .on_up = on_up, .on_down = on_down};
    uv_timer_init(loop, &l->timer);
    l->timer.data = l;
    l->probe.loop = loop;
    arm_timer(l, 0);
}

void db_lead_end(struct db_lead *l)
{
    l->is_closing = true;
    uv_timer_stop(&l->timer);
    lead_probe_reset(&l->probe);
    db_conn_close(&l->conn);
}
