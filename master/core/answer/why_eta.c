#include "why_eta.h"

#include "fit.h"
#include "why_try.h"
#include <inttypes.h>
#include <math.h>

enum { STEPS_MAX = 64 };

void eta_on_progress(struct trial *t, double units, int64_t now_ms)
{
    const struct alloc *a = t->alloc;
    if (!a || !isfinite(units))
        return;
    if (t->speed.run_id != t->run_id || units < t->speed.units) {
        t->speed.run_id = t->run_id;
        t->speed.from_units = units;
        t->speed.from_ms = now_ms;
    }
    t->speed.units = units;
    t->speed.at_ms = now_ms;
}

int64_t eta_of(const struct alloc *a, int64_t now_ms)
{
    const struct trial *t = a->trial;
    if (!t || t->speed.run_id != t->run_id || t->op == OP_NONE)
        return -1;
    double done = t->speed.units - t->speed.from_units;
    double took = (double)(t->speed.at_ms - t->speed.from_ms);
    double left = (double)t->op_length - t->speed.units;
    if (done <= 0 || took <= 0)
        return -1;
    double ms = left * took / done - (double)(now_ms - t->speed.at_ms);
    return ms < 0 ? 0 : ms > 1e15 ? -1 : (int64_t)ms;
}

struct leaving {
    struct alloc *a;
    int64_t in_ms;
};
struct leavings {
    VEC(struct leaving) list;
};

static int by_end(const void *x, const void *y)
{
    const struct leaving *a = x, *b = y;
    if (a->in_ms != b->in_ms)
        return a->in_ms < b->in_ms ? -1 : 1;
    return (a->a->seq > b->a->seq) - (a->a->seq < b->a->seq);
}

/* Who will leave the pool, the first to go first; returns how many do not say when. */
static size_t collect_leavings(const struct core *c, const struct group *g, int64_t now_ms,
                               struct leavings *ret)
{
    size_t unknown = 0;
    for (size_t i = 0; i < c->allocs.n; i++) {
        struct alloc *a = c->allocs.v[i];
        if (a->pool != g->pool || a->slots == 0 ||
            (a->queued_as != QUEUE_RUNNING && a->queued_as != QUEUE_ENDING))
            continue;
        int64_t in_ms = a->queued_as == QUEUE_ENDING ? 0 : eta_of(a, now_ms);
        unknown += in_ms < 0;
        if (in_ms >= 0)
            vec_push(&ret->list, (struct leaving){a, in_ms});
    }
    if (ret->list.n)
        qsort(ret->list.v, ret->list.n, sizeof *ret->list.v, by_end);
    return unknown;
}

static json_t *eta_json(double seconds, const char *basis)
{
    json_t *j = json_make("{s:s}", "basis", basis);
    json_set(j, "seconds", seconds < 0 ? json_null() : json_double(seconds));
    return j;
}

/* Lets one after another leave, all before it gone, until a pass starts the request: the last of
 * them; NULL: none does. */
static const struct leaving *step_through(struct core *c, struct group *g, const struct leavings *l)
{
    const struct leaving *found = NULL;
    size_t most = (size_t)why_passes(g, STEPS_MAX), i = 0;
    size_t n = l->list.n < most ? l->list.n : most;
    for (; i < n && !found; i++) {
        why_leave(c, l->list.v[i].a);
        if (why_try(c, g) == WHY_STARTS)
            found = &l->list.v[i];
    }
    while (i-- > 0)
        why_return(c, l->list.v[i].a);
    return found;
}

/* Nobody knows how far off their next boundary is; but they are not waited for without end. */
static json_t *answer_ending(const struct leavings *l, int64_t now_ms)
{
    int64_t killed_ms = now_ms;
    for (size_t i = 0; i < l->list.n; i++) {
        const struct alloc *a = l->list.v[i].a;
        if (a->queued_as == QUEUE_ENDING && a->preempt_ms != INT64_MAX && a->preempt_ms > killed_ms)
            killed_ms = a->preempt_ms;
    }
    if (killed_ms == now_ms)
        return eta_json(-1, "as soon as what is being ended is gone");
    det_cleanup(freep) char *text =
        det_asprintf("as soon as what was asked to stop has stopped; it is killed in %" PRId64
                     " s at the latest",
                     (killed_ms - now_ms + 999) / 1000);
    return eta_json(-1, text);
}

static json_t *answer_in(int64_t ms)
{
    return eta_json((double)ms / 1000,
                    "from the speed of the trials that run and what is left of their operations");
}

json_t *eta_start(struct core *c, struct group *g, int64_t now_ms)
{
    struct leavings l = {0};
    if (!g->could)
        return eta_json(-1, "not before the agents of the pool change");
    size_t unknown = collect_leavings(c, g, now_ms, &l);
    size_t mark = fit_mark(&g->pool->fit);
    const struct leaving *last = step_through(c, g, &l);
    fit_undo(&g->pool->fit, mark);
    json_t *known = !last                                ? NULL
                    : last->a->queued_as == QUEUE_ENDING ? answer_ending(&l, now_ms)
                                                         : answer_in(last->in_ms);
    vec_free(&l.list);
    if (known)
        return known;
    if (unknown) {
        det_cleanup(freep) char *text =
            det_asprintf("%zu of the trials in its way %s not reported enough to tell their speed",
                         unknown, unknown == 1 ? "has" : "have");
        return eta_json(-1, text);
    }
    return eta_json(-1, "the ends of the trials that run do not tell");
}
