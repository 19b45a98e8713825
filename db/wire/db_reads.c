/*
 * Reads: which connection takes them, and what waits for one. Equal reads (one statement, equal
 * arguments) that wait are one, and wait while such a one is under way: what many ask at once is
 * looked up once. None is answered with what was read before it asked, but where its
 * caller says that a recent answer will do (db_recent.h).
 */
#include "db_impl.h"

#include "db_recent.h"
#include "db_stmt.h"
#include "mem.h"
#include "shared_buf.h"

#include <string.h>

/* Different ones that wait; beyond: DET_EUNAVAIL. */
enum { READS_MAX = 8192, SEARCHES_MAX = 64, DRAWINGS_MAX = 256 };
/* Enough that a server never waits for the master; the others wait here, in order, for whichever
 * connection is the first to have room: none waits behind a slow one. Searches are slow. */
enum { READ_OPS_MAX = 2 * 4, SEARCH_OPS_MAX = 2 * 1, DRAWING_OPS_MAX = 2 * 2 };
enum { LOOK_MAX = 64 }; /* equal ones are looked for among the first that wait */
enum { HOLD_MS = 200 }; /* one that is under way for longer may wait behind a slow one itself */

struct db_asker {
    db_cb *cb;
    void *arg;
};
struct db_read { /* that waits for a connection to have room, or is under way */
    struct db_read *next;
    struct db_lane *lane;
    struct db_stmt *s;
    struct db_asker *askers;
    size_t n;
    bool is_kept;           /* the answer, for who asks next */
    enum db_rests on;       /* what that may not miss */
    struct db_recent_at at; /* when it was sent */
};

struct db_kept { /* a read that waits for PostgreSQL */
    struct db_kept *next;
    struct db *db;
    const char *sql;
    int64_t id;
    db_cb *cb;
    void *arg;
};

static bool link_is_up(const struct db_link *l)
{
    return l->usable && l->conn.state == CONN_UP; /* its end may be under way */
}

static bool is_possible(const struct db_lane *lane)
{
    if (lane->db->closing || lane->db->stalled)
        return false;
    for (int i = 0; i < lane->links_n; i++)
        if (link_is_up(&lane->links[i]))
            return true;
    return false;
}

/* The one with the most room; NULL: none has any. */
static struct db_link *link_pick(struct db_lane *lane)
{
    struct db_link *best = NULL;
    for (int i = 0; i < lane->links_n; i++) {
        struct db_link *l = &lane->links[i];
        if (link_is_up(l) && l->conn.ops < (best ? best->conn.ops : lane->ops_max))
            best = l;
    }
    return best;
}

static struct db_read *equal_one(struct db_read *list, const struct db_stmt *s)
{
    for (int i = 0; list && i < LOOK_MAX; list = list->next, i++)
        if (db_stmt_equal(list->s, s))
            return list;
    return NULL;
}

static void read_unlink(struct db_lane *lane, struct db_read **at)
{
    struct db_read *r = *at;
    *at = r->next;
    if (lane->end == &r->next)
        lane->end = at;
    lane->n--;
}

static void read_free(struct db_read *r)
{
    free(r->s);
    free(r->askers);
    free(r);
}

static void read_fail(struct db_read *r)
{
    for (size_t i = 0; i < r->n; i++)
        db_fail_later(r->lane->db, r->askers[i].cb, r->askers[i].arg, DET_EUNAVAIL, DB_UNREACHABLE);
    read_free(r);
}

static struct db_recent_at now_of(const struct db *db, enum db_rests on)
{
    return (struct db_recent_at){uv_now(db->loop), db->group.changes, db->group.validations,
                                 on == DB_RESTS_VALIDATIONS};
}

/* For as long as it is worth it: what takes a moment is nearly always looked up anew, where it
 * would miss something. */
static void keep_answer(struct db_read *r, struct db_result *result, struct shared_buf *made)
{
    uint64_t ms = DB_RECENT_TIMES * (uv_now(r->lane->db->loop) - r->at.ms);
    struct db_recent_at until = r->at;
    until.ms += r->on != DB_RESTS_REPORTS || ms > DB_RECENT_MS ? DB_RECENT_MS : ms;
    db_recent_keep(&r->lane->recent, det_take(r->s), result, made, &until);
}

static void on_read(void *arg, const struct db_result *result)
{
    struct db_read *r = arg, **at = &r->lane->flying;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next; /* first: who is answered may ask again */
    struct db_result shared = *result;
    shared.made = shared_buf_create();
    for (size_t i = 0; i < r->n; i++)
        r->askers[i].cb(r->askers[i].arg, &shared);
    if (r->is_kept && result->rc == 0)
        keep_answer(r, (struct db_result *)result, shared.made);
    shared_buf_unref(shared.made);
    read_free(r);
}

static void on_read_done(void *arg, const struct db_result *r)
{
    struct db_link *l = arg;
    db_reads_send(l->db);
}

static void read_send(struct db_link *l, struct db_read *r)
{
    r->at = now_of(l->db, r->on);
    r->next = r->lane->flying;
    r->lane->flying = r;
    db_conn_lend(&l->conn, r->s, on_read, r);
    db_conn_sync(&l->conn, on_read_done, l);
}

/* Whether an equal one has just been sent: the newest is the first of the list. */
static bool is_held(const struct db_lane *lane, const struct db_read *r)
{
    const struct db_read *f = equal_one(lane->flying, r->s);
    return f && uv_now(lane->db->loop) - f->at.ms < HOLD_MS;
}

/* What waits is waited for: some connection that is up has no room, and calls this once it has, as
 * one that comes up does; or it is held, and on_watch() looks again. */
static void lane_send(struct db_lane *lane)
{
    for (struct db_read **at = &lane->waiting; *at;) {
        struct db_read *r = *at;
        bool possible = is_possible(lane);
        if (possible && is_held(lane, r)) {
            at = &r->next;
            continue;
        }
        struct db_link *l = possible ? link_pick(lane) : NULL;
        if (possible && !l)
            return;
        read_unlink(lane, at);
        if (l)
            read_send(l, r);
        else
            read_fail(r);
    }
}

void db_reads_send(struct db *db)
{
    lane_send(&db->reads);
    lane_send(&db->searches);
    lane_send(&db->drawings);
}

static void lane_init(struct db_lane *lane, struct db_lane is)
{
    *lane = is;
    lane->end = &lane->waiting;
}

void db_reads_init(struct db *db)
{
    lane_init(&db->reads, (struct db_lane){.db = db,
                                           .links = db->readers,
                                           .links_n = db->readers_n,
                                           .ops_max = READ_OPS_MAX,
                                           .waiting_max = READS_MAX});
    lane_init(&db->searches, (struct db_lane){.db = db,
                                              .links = db->searchers,
                                              .links_n = DB_SEARCHERS,
                                              .ops_max = SEARCH_OPS_MAX,
                                              .waiting_max = SEARCHES_MAX});
    lane_init(&db->drawings, (struct db_lane){.db = db,
                                              .links = db->charts,
                                              .links_n = DB_CHARTS,
                                              .ops_max = DRAWING_OPS_MAX,
                                              .waiting_max = DRAWINGS_MAX});
}

static void read_add(struct db_read *r, db_cb *cb, void *arg)
{
    r->askers = det_reallocarray(r->askers, r->n + 1, sizeof *r->askers);
    r->askers[r->n++] = (struct db_asker){cb, arg};
}

/* Takes s. */
static struct db_read *read_wait(struct db_lane *lane, struct db_stmt *s)
{
    struct db_read *r = equal_one(lane->waiting, s);
    if (r) {
        free(s);
        return r;
    }
    r = det_zalloc(sizeof *r);
    *r = (struct db_read){.lane = lane, .s = s};
    *lane->end = r;
    lane->end = &r->next;
    lane->n++;
    return r;
}

static bool lane_can(struct db_lane *lane, struct db_asker who)
{
    bool full = lane->n >= lane->waiting_max, can = !full && is_possible(lane);
    if (!can)
        db_fail_later(lane->db, who.cb, who.arg, DET_EUNAVAIL,
                      full ? "too many such reads wait; try again" : DB_UNREACHABLE);
    return can;
}

/* One under way whose answer will be recent enough. */
static struct db_read *recent_flying(const struct db_lane *lane, const struct db_stmt *s,
                                     const struct db_recent_at *now)
{
    struct db_read *f = equal_one(lane->flying, s);
    struct db_recent_at until = f ? f->at : *now;
    until.ms += DB_RECENT_MS;
    return f && !db_recent_is_past(&until, now) ? f : NULL;
}

/* Whether a recent answer does. */
static bool has_recent(struct db_lane *lane, const struct db_stmt *s, struct db_asker who)
{
    struct db_recent_at now = now_of(lane->db, DB_RESTS_REPORTS);
    struct db_recent *had = db_recent_find(&lane->recent, s, &now);
    struct db_read *f = had ? NULL : recent_flying(lane, s, &now);
    if (had)
        db_recent_later(lane->db, had, who.cb, who.arg);
    else if (f)
        read_add(f, who.cb, who.arg);
    return had || f;
}

/* may_recent: a recent answer will do, and this one is kept for others. */
static void lane_query(struct db_lane *lane, const char *sql, const struct db_args *args,
                       struct db_asker who, bool may_recent, enum db_rests on)
{
    if (!lane_can(lane, who))
        return;
    struct db_stmt *s = db_stmt_create(sql, args);
    may_recent = may_recent && (on != DB_RESTS_REPORTS || !lane->db->o.always_anew);
    if (may_recent && has_recent(lane, s, who)) {
        free(s);
        return;
    }
    struct db_read *r = read_wait(lane, s);
    r->is_kept = may_recent;
    r->on = on;
    read_add(r, who.cb, who.arg);
    lane_send(lane);
}

void db_query(struct db *db, const char *sql, const struct db_args *args, db_cb *cb, void *arg)
{
    lane_query(&db->reads, sql, args, (struct db_asker){cb, arg}, false, DB_RESTS_REPORTS);
}

void db_query_search(struct db *db, const char *sql, const struct db_args *args, db_cb *cb,
                     void *arg)
{
    lane_query(&db->searches, sql, args, (struct db_asker){cb, arg}, false, DB_RESTS_REPORTS);
}

void db_query_list(struct db *db, const char *sql, const struct db_args *args, db_cb *cb, void *arg)
{
    lane_query(&db->searches, sql, args, (struct db_asker){cb, arg}, true, DB_RESTS_REPORTS);
}

void db_query_chart(struct db *db, const char *sql, const struct db_args *args, db_cb *cb,
                    void *arg)
{
    lane_query(&db->drawings, sql, args, (struct db_asker){cb, arg}, true, DB_RESTS_REPORTS);
}

void db_query_lasting(struct db *db, enum db_rests on, const char *sql, const struct db_args *args,
                      db_cb *cb, void *arg)
{
    lane_query(&db->reads, sql, args, (struct db_asker){cb, arg}, on != DB_RESTS_REPORTS, on);
}

void db_query_list_lasting(struct db *db, enum db_rests on, const char *sql,
                           const struct db_args *args, db_cb *cb, void *arg)
{
    lane_query(&db->searches, sql, args, (struct db_asker){cb, arg}, true, on);
}

void db_query_chart_lasting(struct db *db, enum db_rests on, const char *sql,
                            const struct db_args *args, db_cb *cb, void *arg)
{
    lane_query(&db->drawings, sql, args, (struct db_asker){cb, arg}, true, on);
}

void db_reads_forget(struct db *db, bool all)
{
    struct db_recent_at now = now_of(db, DB_RESTS_REPORTS);
    if (all)
        now.changes = UINT64_MAX;
    db_recent_forget(&db->reads.recent, &now);
    db_recent_forget(&db->searches.recent, &now);
    db_recent_forget(&db->drawings.recent, &now);
}

static void on_kept(void *arg, const struct db_result *r)
{
    struct db_kept *k = arg;
    if (db_rc(r) == DET_EUNAVAIL && !k->db->closing) {
        k->next = k->db->kept;
        k->db->kept = k;
        return;
    }
    k->cb(k->arg, r);
    free(k);
}

static void kept_send(struct db_kept *k)
{
    db_query(k->db, k->sql, db_i64_arg(DB_ARGS, k->id), on_kept, k);
}

void db_kept_send_all(struct db *db)
{
    struct db_kept *k = is_possible(&db->reads) ? db->kept : NULL;
    if (k)
        db->kept = NULL;
    for (struct db_kept *next; k; k = next) {
        next = k->next;
        kept_send(k);
    }
}

void db_kept_fail(struct db *db)
{
    while (db->kept) {
        struct db_kept *k = db->kept;
        db->kept = k->next;
        db_fail_later(db, k->cb, k->arg, DET_ECANCELED, "the master is stopping");
        free(k);
    }
}

void db_query_kept(struct db *db, const char *sql, int64_t id, db_cb *cb, void *arg)
{
    struct db_kept *k = det_alloc(sizeof *k);
    *k = (struct db_kept){.db = db, .sql = sql, .id = id, .cb = cb, .arg = arg};
    kept_send(k);
}
