#include "db_flush.h"

#include "db_group.h"

static void force_log(struct db_flush *f);

static void on_done(struct db_flush *f, bool ok)
{
    struct db_tx *list = f->asked;
    f->asked = NULL;
    if (f->waiting)
        force_log(f); /* the disk works while the answers are made */
    f->on_flushed(f->arg, list, ok);
}

static void on_statement(void *arg, const struct db_result *r)
{
    bool *ok = arg;
    *ok = r->rc == 0;
}

static void on_sync(void *arg, const struct db_result *failed)
{
    struct db_flush *f = arg;
    on_done(f, f->ok && !failed && f->conn->state == CONN_UP);
}

/* A message in the log that nobody reads: the least that makes a commit wait for the disk. */
static void force_log(struct db_flush *f)
{
    static const char sql[] = "SELECT pg_logical_emit_message(true, 'det', '')";
    f->asked = f->waiting;
    f->waiting = NULL;
    if (f->conn->state != CONN_UP) {
        on_done(f, false);
        return;
    }
    f->ok = false;
    db_conn_send(f->conn, db_stmt_create(sql, NULL), on_statement, &f->ok);
    db_conn_sync(f->conn, on_sync, f);
}

bool db_flush_is_idle(const struct db_flush *f)
{
    return !f->asked && !f->waiting;
}

void db_flush_push(struct db_flush *f, struct db_tx *list)
{
    struct db_tx **end = f->waiting ? f->waiting_end : &f->waiting;
    *end = list;
    for (; *end; end = &(*end)->next)
        ;
    f->waiting_end = end;
    if (!f->asked)
        force_log(f);
}
