#include "db_prep.h"

#include "map.h"
#include "mem.h"

#include <stdio.h>

struct db_prep *db_prep_of(struct db_preps *ps, const char *sql)
{
    if (!ps->by_text)
        ps->by_text = map_create();
    struct db_prep *p = map_get(ps->by_text, sql);
    if (p)
        return p;
    p = det_zalloc(sizeof *p);
    snprintf(p->name, sizeof p->name, "d%u", ++ps->names);
    map_put(ps->by_text, sql, p);
    return p;
}

bool db_prep_is_usable(const struct db_preps *ps, const struct db_prep *p)
{
    return p->state == PREP_READY || (p->state == PREP_SENT && p->segment == ps->segment);
}

void db_prep_on_answer(void *arg, const struct db_result *r)
{
    struct db_prep *p = arg;
    if (db_rc(r) == 0)
        p->state = PREP_READY;
    else
        p->state = db_rc(r) == DET_ECANCELED ? PREP_NONE : PREP_NEVER;
    if (p->state == PREP_NEVER) {
        p->why = *r;
        p->why.pg = NULL; /* the connection's */
    }
}

void db_prep_on_use(struct db_prep *p, struct db_result *r)
{
    if (r->rc == DET_ECANCELED && p->state == PREP_NEVER && p->why.rc < 0) {
        db_result_finish(r);
        *r = p->why;
    }
    if (db_state(r) == DB_STATE_UNPREPARED)
        p->state = PREP_NEVER;
}

void db_preps_finish(struct db_preps *ps)
{
    const char *sql;
    void *p;
    for (size_t it = 0; ps->by_text && map_next(ps->by_text, &it, &sql, &p);)
        free(p);
    map_destroy(ps->by_text);
    ps->by_text = NULL;
}
