/* Reads: which connection takes them, and what waits for one. */
#include "db_impl.h"

#include "mem.h"

enum { READS_MAX = 8192, SEARCHES_MAX = 16 }; /* that wait; beyond: DET_EUNAVAIL */
/* Of one connection at a time: a read and its sync each are one. Enough that a server never waits
 * for the master; the others wait here, in order, for whichever connection is the first to have
 * room: none waits behind a slow one. */
enum { READ_OPS_MAX = 2 * 4 };

struct db_read { /* that waits for a connection to have room */
    struct db_read *next;
    struct db_stmt *s;
    db_cb *cb;
    void *arg;
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

static bool reads_possible(const struct db *db)
{
    if (db->closing || db->stalled)
        return false;
    for (int i = 0; i < db->readers_n; i++)
        if (link_is_up(&db->readers[i]))
            return true;
    return false;
}

/* The one with the most room; NULL: none has any. */
static struct db_link *reader_pick(struct db *db)
{
    struct db_link *best = NULL;
    for (int i = 0; i < db->readers_n; i++) {
        struct db_link *l = &db->readers[i];
        if (link_is_up(l) && l->conn.ops < (best ? best->conn.ops : READ_OPS_MAX))
            best = l;
    }
    return best;
}

static struct db_read *reads_take(struct db *db)
{
    struct db_read *r = db->reads;
    db->reads = r->next;
    if (!db->reads)
        db->reads_end = &db->reads;
    db->reads_n--;
    return r;
}

static void read_fail(struct db *db, struct db_read *r)
{
    free(r->s);
    db_fail_later(db, r->cb, r->arg, DET_EUNAVAIL, DB_UNREACHABLE);
}

static void on_read_done(void *arg, const struct db_result *r)
{
    struct db_link *l = arg;
    db_reads_send(l->db);
}

static void link_read(struct db_link *l, struct db_stmt *s, db_cb *cb, void *arg)
{
    db_conn_send(&l->conn, s, cb, arg);
    db_conn_sync(&l->conn, on_read_done, l);
}

/* What waits is waited for: some connection that is up has no room, and calls this once it has, as
 * one that comes up does. */
void db_reads_send(struct db *db)
{
    while (db->reads) {
        bool possible = reads_possible(db);
        struct db_link *l = possible ? reader_pick(db) : NULL;
        if (possible && !l)
            return;
        struct db_read *r = reads_take(db);
        if (l)
            link_read(l, r->s, r->cb, r->arg);
        else
            read_fail(db, r);
        free(r);
    }
}

void db_query(struct db *db, const char *sql, const struct db_args *args, db_cb *cb, void *arg)
{
    bool full = db->reads_n == READS_MAX;
    if (full || !reads_possible(db)) {
        db_fail_later(db, cb, arg, DET_EUNAVAIL,
                      full ? "too many reads wait; try again" : DB_UNREACHABLE);
        return;
    }
    struct db_read *r = det_alloc(sizeof *r);
    *r = (struct db_read){.s = db_stmt_create(sql, args), .cb = cb, .arg = arg};
    *db->reads_end = r;
    db->reads_end = &r->next;
    db->reads_n++;
    db_reads_send(db);
}

void db_query_search(struct db *db, const char *sql, const struct db_args *args, db_cb *cb,
                     void *arg)
{
    struct db_link *l = &db->searcher;
    bool is_up = l->usable && !db->closing && !db->stalled;
    if (is_up && l->conn.ops < SEARCHES_MAX)
        link_read(l, db_stmt_create(sql, args), cb, arg);
    else
        db_fail_later(db, cb, arg, DET_EUNAVAIL,
                      is_up ? "too many searches wait for each other; try again" : DB_UNREACHABLE);
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
    struct db_kept *k = reads_possible(db) ? db->kept : NULL;
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
