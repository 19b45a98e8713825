/* What is done in the loop's next turn: answers that are refusals already, and the next group. */
#include "db_impl.h"

#include "mem.h"

struct deferred {
    struct deferred *next;
    db_cb *cb;
    void *arg;
    struct db_result result;
    struct db_recent *recent; /* the result's; NULL: it is a failure */
};

void db_kick_group(struct db *db)
{
    if (!db->closing && db->writer.usable && db->flusher.usable)
        db_group_kick(&db->group);
}

void db_run_deferred(struct db *db)
{
    struct deferred *d = db->deferred;
    db->deferred = NULL;
    db->deferred_end = &db->deferred;
    while (d) {
        struct deferred *next = d->next;
        d->cb(d->arg, d->recent ? db_recent_result(d->recent) : &d->result);
        db_recent_unref(d->recent);
        free(d);
        d = next;
    }
    db_kick_group(db);
}

static void on_kick(uv_timer_t *t)
{
    db_run_deferred(t->data);
}

void db_kick(struct db *db)
{
    if (!uv_is_active((uv_handle_t *)&db->kick))
        uv_timer_start(&db->kick, on_kick, 0, 0);
}

static struct deferred *defer_answer(struct db *db, db_cb *cb, void *arg)
{
    struct deferred *d = det_zalloc(sizeof *d);
    d->cb = cb;
    d->arg = arg;
    *db->deferred_end = d;
    db->deferred_end = &d->next;
    db_kick(db);
    return d;
}

void db_fail_later(struct db *db, db_cb *cb, void *arg, int code, const char *text)
{
    if (cb)
        db_result_fail(&defer_answer(db, cb, arg)->result, code, text);
}

void db_recent_later(struct db *db, struct db_recent *r, db_cb *cb, void *arg)
{
    defer_answer(db, cb, arg)->recent = db_recent_ref(r);
}
