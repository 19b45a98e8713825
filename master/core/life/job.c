#include "job.h"

#include "alloc.h"
#include "exp.h"
#include "pool.h"
#include "queue.h"
#include "quota.h"

static const char *name_of(const struct exp *e)
{
    return e->conf.name ? e->conf.name : "";
}

/* The queue of the pool at e's priority, in order, without e. */
struct level {
    VEC(struct exp *) list;
};

static int by_queue(const void *x, const void *y)
{
    return queue_cmp(*(const struct exp *const *)x, *(const struct exp *const *)y);
}

static void level_read(const struct core *c, const struct exp *e, const struct exp *next_to,
                       struct level *ret)
{
    for (size_t i = 0; i < c->exps.n; i++) {
        struct exp *o = c->exps.v[i];
        if (o != e && o->pool == e->pool && queue_priority(o) == queue_priority(next_to) &&
            !exp_state_is_terminal(o->state))
            vec_push(&ret->list, o);
    }
    if (ret->list.n)
        qsort(ret->list.v, ret->list.n, sizeof *ret->list.v, by_queue);
}

/* Far enough apart again to have a place between any two. */
static void level_spread(struct core *c, struct level *l)
{
    for (size_t i = 0; i < l->list.n; i++) {
        l->list.v[i]->group->position = (double)(i + 1);
        exp_mark(c, l->list.v[i]);
    }
}

static double position_between(const struct level *l, size_t at)
{
    double low = at > 0 ? l->list.v[at - 1]->group->position : l->list.v[0]->group->position - 1;
    double high = at < l->list.n ? l->list.v[at]->group->position : low + 1;
    if (at == 0)
        high = l->list.v[0]->group->position;
    return low + (high - low) / 2;
}

static bool is_between(const struct level *l, size_t at, double position)
{
    return (at == 0 || position > l->list.v[at - 1]->group->position) &&
           (at == l->list.n || position < l->list.v[at]->group->position);
}

static void move_next_to(struct core *c, struct exp *e, const struct exp *to, bool behind)
{
    struct level l = {0};
    level_read(c, e, to, &l);
    size_t at = 0;
    while (l.list.v[at] != to)
        at++;
    at += behind;
    e->group->priority = to->group->priority;
    e->group->position = position_between(&l, at);
    if (!is_between(&l, at, e->group->position)) {
        level_spread(c, &l);
        e->group->position = position_between(&l, at);
    }
    vec_free(&l.list);
}

struct pool *job_pool(const struct core *c, const struct exp *e, const struct core_event *patches,
                      size_t n)
{
    while (n-- > 0)
        if (patches[n].exp_id == e->id && patches[n].patch.pool)
            return pool_find(c, patches[n].patch.pool);
    return e->pool;
}

static int64_t neighbour_of(const struct core_patch *p)
{
    return p->ahead_of ? p->ahead_of : p->behind_of;
}

static int check_next_to(const struct core *c, const struct exp *e,
                         const struct core_event *patches, size_t i, struct det_err *err)
{
    int64_t to = neighbour_of(&patches[i].patch);
    const struct exp *other = exp_find(c, to);
    const struct pool *pool = job_pool(c, e, patches, i), *others;
    if (!other || exp_state_is_terminal(other->state))
        return det_fail(err, DET_ENOENT, "the job to move next to (experiment %lld) not found",
                        (long long)to);
    if (other == e)
        return det_fail(err, DET_EINVAL, "a job cannot be moved next to itself");
    others = job_pool(c, other, patches, i);
    if (others != pool)
        return det_fail(err, DET_EINVAL, "job %s is in pool %s, not in %s", name_of(other),
                        others->name, pool->name);
    if (pool->o.scheduler != CORE_PRIORITY)
        return det_fail(err, DET_EINVAL,
                        "pool %s orders its queue by itself: places can be changed only under the "
                        "priority scheduler",
                        pool->name);
    return 0;
}

static int check_pool(const struct core *c, const struct exp *e, const char *name,
                      struct det_err *err)
{
    bool exceeded;
    int rc = core_fits(c, name, e->conf.slots, &exceeded, err);
    if (rc == 0 && e->group->running.n + e->group->ending.n)
        return det_fail(err, DET_ESTATE,
                        "experiment %lld has running trials: pause it first, then move it to pool "
                        "%s",
                        (long long)e->id, name);
    if (rc < 0)
        return rc;
    return quota_check(c, e->group->user->name, pool_find(c, name), e->conf.slots, err);
}

static void move_to_pool(struct core *c, struct exp *e, struct pool *to)
{
    VEC(struct alloc *) waiting = {0};
    if (to == e->pool)
        return;
    for (size_t i = 0; i < e->trials.n; i++)
        if (e->trials.v[i]->alloc)
            vec_push(&waiting, e->trials.v[i]->alloc);
    for (size_t i = 0; i < waiting.n; i++)
        queue_leave(c, waiting.v[i]);
    e->pool = to;
    for (size_t i = 0; i < waiting.n; i++) {
        waiting.v[i]->pool = to;
        queue_update(c, waiting.v[i]);
        alloc_mark(c, waiting.v[i]);
    }
    vec_free(&waiting);
}

int job_check(const struct core *c, const struct exp *e, const struct core_event *patches, size_t i,
              struct det_err *err)
{
    const struct core_patch *p = &patches[i].patch;
    int rc = neighbour_of(p) ? check_next_to(c, e, patches, i, err) : 0;
    return rc == 0 && p->pool ? check_pool(c, e, p->pool, err) : rc;
}

void job_move(struct core *c, struct exp *e, const struct core_patch *p)
{
    int64_t to = neighbour_of(p);
    if (to)
        move_next_to(c, e, exp_find(c, to), p->ahead_of == 0);
    if (p->pool)
        move_to_pool(c, e, pool_find(c, p->pool));
}
