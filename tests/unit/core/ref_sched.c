/* Fair share, priority, first in first out and round robin by looking at every request. */
#include "alloc.h"
#include "queue.h"
#include "sched_ref.h"
#include "trial.h"
#include <math.h>

struct list {
    VEC(struct alloc *) l;
};
struct ref {
    struct core *c;
    struct pool *pool;
    struct ref_out *out;
    struct ref_fit now;
    struct list pending, placed; /* of the pool, by seq */
    struct list stuck;           /* did not fit: nor do the others of their groups, in this pass */
};

static bool is_choosy(const struct alloc *a)
{
    return a->trial && a->trial->avoids.n;
}

static bool is_stuck(const struct ref *r, const struct alloc *a)
{
    for (size_t i = 0; i < r->stuck.l.n; i++)
        if (r->stuck.l.v[i] == a || (!is_choosy(r->stuck.l.v[i]) && r->stuck.l.v[i]->exp == a->exp))
            return true;
    return false;
}

static bool is_started(const struct ref *r, const struct alloc *a)
{
    for (size_t i = 0; i < r->out->starts.n; i++)
        if (r->out->starts.v[i].alloc == a)
            return true;
    return false;
}

static int64_t slots_of(const struct ref *r, const struct alloc *of)
{
    int64_t n = 0;
    for (size_t i = 0; i < r->placed.l.n; i++)
        n += r->placed.l.v[i]->exp == of->exp ? r->placed.l.v[i]->slots : 0;
    for (size_t i = 0; i < r->out->starts.n; i++)
        n += r->out->starts.v[i].alloc->exp == of->exp ? of->slots : 0;
    return n;
}

static bool is_capped(const struct ref *r, const struct alloc *a)
{
    int64_t max = a->exp->group->max_slots;
    return a->slots && max >= 0 && slots_of(r, a) + a->slots > max;
}

static bool start(struct ref *r, struct alloc *a)
{
    struct ref_start p = {.alloc = a};
    if (is_capped(r, a))
        return false;
    if (is_stuck(r, a) || !ref_place(&r->now, a, &p)) {
        vec_push(&r->stuck.l, a);
        vec_free(&p.agents);
        vec_free(&p.slots);
        return false;
    }
    ref_take(&r->now, &p);
    vec_push(&r->out->starts, p);
    return true;
}

static void zero_slots(struct ref *r)
{
    for (size_t i = 0; i < r->pending.l.n; i++)
        if (r->pending.l.v[i]->slots == 0)
            start(r, r->pending.l.v[i]);
}

/* ---- Fair share ---- */

struct group_ref {
    struct exp *e;
    int64_t held, wanted, demand, offer, cap;
};
struct fair {
    struct ref *r;
    VEC(struct group_ref) groups;
    int64_t capacity;
};

static struct group_ref *group_of(struct fair *s, struct exp *e)
{
    for (size_t i = 0; i < s->groups.n; i++)
        if (s->groups.v[i].e == e)
            return &s->groups.v[i];
    vec_push(&s->groups, (struct group_ref){.e = e, .cap = INT64_MAX});
    return &s->groups.v[s->groups.n - 1];
}

static void collect(struct fair *s)
{
    s->capacity = s->r->now.free_total;
    for (size_t i = 0; i < s->r->placed.l.n; i++) {
        struct alloc *a = s->r->placed.l.v[i];
        if (a->slots == 0)
            continue;
        for (size_t k = 0; k < a->containers.n; k++)
            s->capacity += a->containers.v[k]->agent ? (int64_t)a->containers.v[k]->slots.n : 0;
        group_of(s, a->exp)->held += alloc_is_ending(a) ? 0 : a->slots;
        bool again = a->trial->state == TRIAL_ACTIVE && !trial_op_done(a->trial);
        group_of(s, a->exp)->wanted += alloc_is_ending(a) && !again ? 0 : a->slots;
    }
    for (size_t i = 0; i < s->r->pending.l.n; i++) {
        struct alloc *a = s->r->pending.l.v[i];
        if (a->slots && ref_could(s->r->c, s->r->pool, a->slots, false))
            group_of(s, a->exp)->wanted += a->slots;
    }
}

static int by_demand(const void *x, const void *y)
{
    const struct group_ref *a = x, *b = y;
    if (a->demand != b->demand)
        return a->demand < b->demand ? -1 : 1;
    return (a->e->id > b->e->id) - (a->e->id < b->e->id);
}

static int64_t wanted(const struct group_ref *g)
{
    return g->cap < g->demand ? g->cap : g->demand;
}

static int64_t deal(struct fair *s, int64_t left)
{
    double weights = 0;
    int64_t all = left;
    for (size_t i = 0; i < s->groups.n; i++)
        if (s->groups.v[i].offer < wanted(&s->groups.v[i]))
            weights += s->groups.v[i].e->group->weight;
    if (weights <= 0)
        return 0;
    for (size_t i = 0; i < s->groups.n && left > 0; i++) {
        struct group_ref *g = &s->groups.v[i];
        int64_t missing = wanted(g) - g->offer;
        int64_t share = (int64_t)floor((double)all * g->e->group->weight / weights);
        share = share < 1 ? 1 : share;
        share = share < left ? share : left;
        share = share < missing ? share : missing;
        if (share <= 0)
            continue;
        g->offer += share;
        left -= share;
    }
    return left;
}

static void fill(struct fair *s)
{
    for (size_t i = 0; i < s->groups.n; i++)
        s->groups.v[i].offer = 0;
    for (int64_t left = s->capacity; left > 0;)
        left = deal(s, left);
}

static int64_t usable(const struct group_ref *g)
{
    return g->offer - g->offer % g->e->conf.slots;
}

static struct group_ref *waster(const struct fair *s)
{
    struct group_ref *young = NULL;
    for (size_t i = 0; i < s->groups.n; i++) {
        struct group_ref *g = &s->groups.v[i];
        if (usable(g) < g->offer && (!young || g->e->id > young->e->id))
            young = g;
    }
    return young;
}

/* The next by age after that experiment; NULL: none. */
static struct group_ref *next_old(const struct fair *s, int64_t after)
{
    struct group_ref *old = NULL;
    for (size_t i = 0; i < s->groups.n; i++) {
        struct group_ref *g = &s->groups.v[i];
        if (g->e->id > after && (!old || g->e->id < old->e->id))
            old = g;
    }
    return old;
}

/* What the caps have left, one request at a time; false: nobody could use it. */
static bool deal_rest(struct fair *s)
{
    int64_t left = s->capacity;
    bool any = false;
    for (size_t i = 0; i < s->groups.n; i++)
        left -= s->groups.v[i].offer;
    for (struct group_ref *g = next_old(s, 0); g; g = next_old(s, g->e->id)) {
        int64_t next = g->offer + g->e->conf.slots;
        if (next > g->demand || next - g->offer > left)
            continue;
        left -= next - g->offer;
        g->offer = next;
        any = true;
    }
    return any;
}

static void keep_to_cap(struct fair *s, struct group_ref *g)
{
    for (size_t i = 0; i < s->r->placed.l.n; i++) {
        struct alloc *a = s->r->placed.l.v[i];
        if (a->exp != g->e || a->slots == 0 || alloc_is_ending(a) || g->e->group->max_slots < 0 ||
            g->held <= g->e->group->max_slots)
            continue;
        g->held -= a->slots;
        vec_push(&s->r->out->releases, a);
    }
}

static void deal_all(struct fair *s)
{
    for (size_t i = 0; i < s->groups.n; i++) {
        struct group_ref *g = &s->groups.v[i];
        bool capped = g->e->group->max_slots >= 0 && g->wanted > g->e->group->max_slots;
        g->demand = capped ? g->e->group->max_slots : g->wanted;
    }
    if (s->groups.n)
        qsort(s->groups.v, s->groups.n, sizeof *s->groups.v, by_demand);
    fill(s);
    for (struct group_ref *g; (g = waster(s));) {
        g->cap = usable(g);
        fill(s);
    }
    while (deal_rest(s))
        ;
}

/* The requests of k slots within the offers; false: one of them does not fit. */
static bool start_size(struct fair *s, int64_t k)
{
    struct ref *r = s->r;
    for (size_t i = 0; i < r->pending.l.n; i++) {
        struct alloc *a = r->pending.l.v[i];
        struct group_ref *g = a->slots == k ? group_of(s, a->exp) : NULL;
        if (!g || g->held + k > g->offer || is_capped(r, a))
            continue;
        if (start(r, a))
            g->held += k;
        else if (!is_choosy(a))
            return false;
    }
    return true;
}

static double part(const struct group_ref *g)
{
    return floor((double)(g->held + g->e->conf.slots) / g->e->group->weight * 1e6);
}

/* What still fits, in turns: who would hold the least for its weight. */
static void lend(struct fair *s)
{
    struct ref *r = s->r;
    for (;;) {
        struct alloc *best = NULL;
        for (size_t i = 0; i < r->pending.l.n; i++) {
            struct alloc *a = r->pending.l.v[i];
            if (a->slots == 0 || is_started(r, a) || is_stuck(r, a) || is_capped(r, a))
                continue;
            double d = part(group_of(s, a->exp)), m = best ? part(group_of(s, best->exp)) : 0;
            if (!best || d < m || (d == m && a->exp_id < best->exp_id))
                best = a;
        }
        if (!best)
            return;
        if (start(r, best))
            group_of(s, best->exp)->held += best->slots;
    }
}

static void fair(struct ref *r)
{
    struct fair s = {.r = r};
    collect(&s);
    deal_all(&s);
    for (size_t i = 0; i < s.groups.n; i++) {
        vec_push(&r->out->offers, ((struct ref_offer){s.groups.v[i].e, s.groups.v[i].offer}));
        keep_to_cap(&s, &s.groups.v[i]);
    }
    int64_t most = 0;
    for (size_t i = 0; i < r->pending.l.n; i++)
        most = r->pending.l.v[i]->slots > most ? r->pending.l.v[i]->slots : most;
    for (int64_t k = most; k > 0 && !r->out->is_begin; k--)
        r->out->is_begin = !start_size(&s, k);
    if (!r->out->is_begin)
        lend(&s);
    vec_free(&s.groups);
}

/* ---- Priority ---- */

static const struct group *group(const struct alloc *a)
{
    return a->kind == KIND_TRIAL ? a->exp->group : &a->pool->collections;
}

static int by_rank(const void *x, const void *y)
{
    const struct alloc *a = *(struct alloc *const *)x, *b = *(struct alloc *const *)y;
    int d = queue_group_cmp(group(a), group(b));
    return d ? d : (a->seq > b->seq) - (a->seq < b->seq);
}

static int level(const struct alloc *a)
{
    return queue_group_level(group(a));
}

struct prio {
    struct ref *r;
    struct list pending, running, waiting;
};

static void rank(struct list *to, const struct list *from, bool aux, bool running)
{
    for (size_t i = 0; i < from->l.n; i++) {
        struct alloc *a = from->l.v[i];
        if ((a->slots == 0) != aux || (running && (!alloc_is_preemptible(a) || alloc_is_ending(a))))
            continue;
        vec_push(&to->l, a);
    }
    if (to->l.n)
        qsort(to->l.v, to->l.n, sizeof *to->l.v, by_rank);
}

static bool try_place(struct ref_fit *f, const struct alloc *a)
{
    struct ref_start p = {0};
    bool fits = ref_place(f, a, &p);
    if (fits)
        ref_take(f, &p);
    vec_free(&p.agents);
    vec_free(&p.slots);
    return fits;
}

static bool make_room(struct prio *s, struct ref_fit *f, struct alloc *wait)
{
    size_t n = s->running.l.n, i = n;
    bool fits = false;
    while (!fits && i > 0 && queue_group_cmp(group(s->running.l.v[i - 1]), group(wait)) > 0) {
        ref_give(f, s->running.l.v[--i]);
        fits = try_place(f, wait);
    }
    for (size_t k = n; fits && k-- > i;)
        vec_push(&s->r->out->releases, s->running.l.v[k]);
    if (fits)
        s->running.l.n = i;
    return fits;
}

enum outlook { NOTHING, ROOM_IS_COMING, RELEASED };

static enum outlook release(struct prio *s)
{
    struct ref_fit f;
    enum outlook out = NOTHING;
    ref_fit_begin(&f, s->r->c, s->r->pool, REF_NOW);
    f.agents.n = 0;
    for (size_t i = 0; i < s->r->now.agents.n; i++)
        vec_push(&f.agents, s->r->now.agents.v[i]);
    f.free_total = s->r->now.free_total;
    for (size_t i = 0; i < s->pending.l.n; i++)
        if ((s->waiting.l.n || !try_place(&f, s->pending.l.v[i])) && !is_choosy(s->pending.l.v[i]))
            vec_push(&s->waiting.l, s->pending.l.v[i]);
    for (size_t i = 0; i < s->r->placed.l.n; i++)
        if (alloc_is_ending(s->r->placed.l.v[i]))
            ref_give(&f, s->r->placed.l.v[i]);
    for (size_t i = 0; i < s->waiting.l.n; i++) {
        if (try_place(&f, s->waiting.l.v[i]))
            out = out == NOTHING ? ROOM_IS_COMING : out;
        else if (make_room(s, &f, s->waiting.l.v[i]))
            out = RELEASED;
        else
            break;
    }
    ref_fit_free(&f);
    return out;
}

static void start_in_order(struct prio *s, enum outlook outlook)
{
    int held_back = -1;
    for (size_t i = 0; i < s->pending.l.n; i++) {
        struct alloc *a = s->pending.l.v[i];
        bool behind = held_back >= 0 && level(a) > held_back;
        if (behind && !(s->r->pool->o.preemption && alloc_is_preemptible(a)))
            break;
        if (start(s->r, a) || is_choosy(a))
            continue;
        if (outlook == ROOM_IS_COMING)
            break;
        if (held_back < 0)
            held_back = level(a);
    }
}

static void priority(struct ref *r, bool aux)
{
    struct prio s = {.r = r};
    rank(&s.pending, &r->pending, aux, false);
    rank(&s.running, &r->placed, aux, true);
    enum outlook outlook = r->pool->o.preemption ? release(&s) : NOTHING;
    if (outlook != RELEASED)
        start_in_order(&s, outlook);
    vec_free(&s.pending.l);
    vec_free(&s.running.l);
    vec_free(&s.waiting.l);
}

/* ---- First in, first out; round robin ---- */

static int by_exp(const void *x, const void *y)
{
    const struct alloc *a = *(struct alloc *const *)x, *b = *(struct alloc *const *)y;
    if (a->exp_id != b->exp_id)
        return a->exp_id < b->exp_id ? -1 : 1;
    return (a->seq > b->seq) - (a->seq < b->seq);
}

static void fifo(struct ref *r)
{
    if (r->pending.l.n)
        qsort(r->pending.l.v, r->pending.l.n, sizeof *r->pending.l.v, by_exp);
    for (size_t i = 0; i < r->pending.l.n; i++)
        if (r->pending.l.v[i]->slots > 0 && !start(r, r->pending.l.v[i]) &&
            !is_choosy(r->pending.l.v[i]))
            break;
}

static size_t placed_of(const struct ref *r, const struct alloc *of)
{
    size_t n = 0;
    for (size_t i = 0; i < r->placed.l.n; i++)
        n += r->placed.l.v[i]->exp_id == of->exp_id && r->placed.l.v[i]->kind == KIND_TRIAL;
    for (size_t i = 0; i < r->out->starts.n; i++)
        n += r->out->starts.v[i].alloc->exp_id == of->exp_id;
    return n;
}

/* The request whose group has the fewest placed, again and again. */
static void round_robin(struct ref *r)
{
    for (;;) {
        struct alloc *best = NULL;
        for (size_t i = 0; i < r->pending.l.n; i++) {
            struct alloc *a = r->pending.l.v[i];
            if (a->slots == 0 || is_started(r, a) || is_stuck(r, a))
                continue;
            size_t n = placed_of(r, a), m = best ? placed_of(r, best) : 0;
            if (!best || n < m || (n == m && by_exp(&a, &best) < 0))
                best = a;
        }
        if (!best)
            return;
        start(r, best);
    }
}

void ref_decide(struct core *c, struct pool *pool, struct ref_out *ret)
{
    struct ref r = {.c = c, .pool = pool, .out = ret};
    *ret = (struct ref_out){0};
    for (size_t i = 0; i < c->allocs.n; i++) {
        struct alloc *a = c->allocs.v[i];
        if (a->pool != pool || a->state == ALLOC_TERMINATED)
            continue;
        if (a->state != ALLOC_PENDING)
            vec_push(&r.placed.l, a);
        else if (a->hold_ms == INT64_MAX)
            vec_push(&r.pending.l, a);
    }
    ref_fit_begin(&r.now, c, pool, REF_NOW);
    if (pool->o.scheduler != CORE_PRIORITY)
        zero_slots(&r);
    if (pool->o.scheduler == CORE_FAIR_SHARE) {
        fair(&r);
    } else if (pool->o.scheduler == CORE_FIFO) {
        fifo(&r);
    } else if (pool->o.scheduler == CORE_ROUND_ROBIN) {
        round_robin(&r);
    } else {
        priority(&r, false);
        priority(&r, true);
    }
    ref_fit_free(&r.now);
    vec_free(&r.pending.l);
    vec_free(&r.placed.l);
    vec_free(&r.stuck.l);
}

void ref_finish(struct ref_out *o)
{
    for (size_t i = 0; i < o->starts.n; i++) {
        vec_free(&o->starts.v[i].agents);
        vec_free(&o->starts.v[i].slots);
    }
    vec_free(&o->starts);
    vec_free(&o->releases);
    vec_free(&o->offers);
}
