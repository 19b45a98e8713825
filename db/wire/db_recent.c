#include "db_recent.h"

#include "mem.h"
#include "shared_buf.h"

/* Of each lane. Beyond: the oldest go. */
enum { RECENT_MAX = 256, RECENT_BYTES_MAX = 64 << 20 };

struct db_recent {
    struct db_recent *next;
    struct db_stmt *s;
    struct db_result result;
    struct db_recent_at until;
    size_t bytes;
    int users; /* the list, and who is answered in a moment */
};

struct db_recent *db_recent_ref(struct db_recent *r)
{
    r->users++;
    return r;
}

void db_recent_unref(struct db_recent *r)
{
    if (!r || --r->users > 0)
        return;
    free(r->s);
    db_result_finish(&r->result);
    shared_buf_unref(r->result.made);
    free(r);
}

const struct db_result *db_recent_result(const struct db_recent *r)
{
    return &r->result;
}

bool db_recent_is_past(const struct db_recent_at *until, const struct db_recent_at *now)
{
    return until->changes != now->changes || now->ms >= until->ms ||
           (until->rests_on_validations && until->validations != now->validations);
}

static bool is_recent(const struct db_recent *r, const struct db_recent_at *now)
{
    return !db_recent_is_past(&r->until, now);
}

struct db_recent *db_recent_find(const struct db_recents *all, const struct db_stmt *s,
                                 const struct db_recent_at *now)
{
    for (struct db_recent *r = all->list; r; r = r->next)
        if (db_stmt_equal(r->s, s))
            return is_recent(r, now) ? r : NULL;
    return NULL;
}

static void remove_at(struct db_recents *all, struct db_recent **at)
{
    struct db_recent *r = *at;
    *at = r->next;
    all->n--;
    all->bytes -= r->bytes;
    db_recent_unref(r);
}

void db_recent_forget(struct db_recents *all, const struct db_recent_at *now)
{
    for (struct db_recent **at = &all->list; *at;)
        if (is_recent(*at, now))
            at = &(*at)->next;
        else
            remove_at(all, at);
}

static void remove_oldest(struct db_recents *all)
{
    struct db_recent **at = &all->list;
    while ((*at)->next)
        at = &(*at)->next;
    remove_at(all, at);
}

void db_recent_keep(struct db_recents *all, struct db_stmt *s, struct db_result *r,
                    struct shared_buf *made, const struct db_recent_at *until)
{
    struct db_recent *k = det_zalloc(sizeof *k);
    *k = (struct db_recent){.s = s, .result = *r, .until = *until, .users = 1};
    r->pg = NULL;
    k->result.made = shared_buf_ref(made);
    k->bytes = PQresultMemorySize(k->result.pg) + made->b.len + sizeof *s + s->bytes;
    k->next = all->list;
    all->list = k;
    all->n++;
    all->bytes += k->bytes;
    while (all->n > RECENT_MAX || all->bytes > RECENT_BYTES_MAX)
        remove_oldest(all);
}
