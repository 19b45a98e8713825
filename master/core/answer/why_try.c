/*
 * Each change is made to what the pass reads, a pass is run, and the change is taken back; nothing
 * that is written into rows or sent to anybody is touched.
 */
#include "why_try.h"

#include "agent.h"
#include "queue.h"
#include "quota.h"
#include "scheduler.h"
#include <inttypes.h>

enum { PASSES_MAX = 48, GROUPS_MAX = 48000, WEIGHT_MAX = 64 };

static void add_suggestion(json_t *list, const char *command, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

static void add_suggestion(json_t *list, const char *command, const char *fmt, ...)
{
    va_list ap;
    struct buf text = BUF_INIT;
    va_start(ap, fmt);
    buf_vaddf(&text, fmt, ap);
    va_end(ap);
    json_array_append_new(list, json_make("{s:s,s:s}", "text", buf_str(&text), "command", command));
    buf_finish(&text);
}

int why_passes(const struct group *g, int most)
{
    size_t n = GROUPS_MAX / (g->pool->groups.n + 1);
    return n < 1 ? 1 : n < (size_t)most ? (int)n : most;
}

enum why_outcome why_try(struct core *c, struct group *g)
{
    struct sched s;
    size_t mark = fit_mark(&g->pool->fit);
    enum why_outcome out = WHY_STILL_WAITS;
    sched_decide(&s, c, g->pool);
    if (s.releases.n > 0)
        out = WHY_MAKES_ROOM;
    for (size_t i = 0; i < s.starts.n; i++)
        if (s.starts.v[i].alloc == g->pending.first)
            out = WHY_STARTS;
    fit_undo(&g->pool->fit, mark);
    sched_finish(&s);
    return out;
}

/* Between steps no pool has anything to decide; with quotas a change reaches beyond its own. */
static void clear_dirty(struct core *c)
{
    for (size_t i = 0; i < c->pools.n; i++)
        c->pools.v[i]->dirty = false;
}

void why_leave(struct core *c, struct alloc *gone)
{
    fit_give(&gone->pool->fit, gone);
    queue_leave(c, gone);
    clear_dirty(c);
}

void why_return(struct core *c, struct alloc *gone)
{
    queue_update(c, gone);
    clear_dirty(c);
}

/* why_try() without this placed allocation. */
static enum why_outcome try_without(struct core *c, struct group *g, struct alloc *gone)
{
    size_t mark = fit_mark(&g->pool->fit);
    why_leave(c, gone);
    enum why_outcome out = why_try(c, g);
    why_return(c, gone);
    fit_undo(&g->pool->fit, mark);
    return out;
}

/* ---- What a person could change ---- */

/* The most slots, fewer than it asks for, with which it would start now. */
static void fewer_slots(struct core *c, struct group *g, json_t *list)
{
    struct alloc *a = g->pending.first;
    int64_t was = g->size, k = was - 1;
    int passes = 0, most = why_passes(g, PASSES_MAX);
    enum why_outcome out = WHY_STILL_WAITS;
    for (; k >= 1 && passes++ < most; k--) {
        g->size = a->slots = k;
        if ((out = why_try(c, g)) == WHY_STARTS)
            break;
    }
    g->size = a->slots = was;
    if (out == WHY_STARTS)
        add_suggestion(list, "",
                       "ask for %" PRId64 " slot%s (resources.slots_per_trial) instead of %" PRId64
                       ": that many would start now",
                       k, k == 1 ? "" : "s", was);
}

static const char *outcome_text(enum why_outcome o)
{
    return o == WHY_STARTS ? "it would start now" : "others would be asked to make room for it";
}

/* Says that this setting of the experiment would help; nothing when it would not. */
static void offer_setting(json_t *list, const struct exp *e, const char *key, const double value[2],
                          enum why_outcome out)
{
    if (out == WHY_STILL_WAITS)
        return;
    det_cleanup(freep) char *cmd =
        det_asprintf("det experiment set %s %" PRId64 " %.15g", key, e->id, value[1]);
    add_suggestion(list, cmd, "%s %.15g instead of %.15g: %s", key, value[1], value[0],
                   outcome_text(out));
}

/* The least important level that would be enough. */
static void more_priority(struct core *c, struct group *g, json_t *list)
{
    struct exp *e = g->exp;
    int was = e->group->priority, now = queue_priority(e);
    int passes = 0, most = why_passes(g, PASSES_MAX);
    enum why_outcome out = WHY_STILL_WAITS;
    for (int p = now - 1; p >= 1 && passes < most; p--) {
        bool is_step = p == 1;
        for (size_t i = 0; i < g->pool->groups.n && !is_step; i++) {
            int level = queue_group_level(g->pool->groups.v[i]);
            is_step = g->pool->groups.v[i] != g && (level == p || level == p + 1);
        }
        if (!is_step)
            continue; /* nothing changes between two levels that are in use */
        passes++;
        e->group->priority = p;
        if ((out = why_try(c, g)) != WHY_STILL_WAITS)
            break;
    }
    const double value[] = {now, e->group->priority};
    e->group->priority = was;
    offer_setting(list, e, "priority", value, out);
}

static void more_weight(struct core *c, struct group *g, json_t *list)
{
    struct exp *e = g->exp;
    double was = e->group->weight;
    enum why_outcome out = WHY_STILL_WAITS;
    for (double by = 2; by <= WEIGHT_MAX && out == WHY_STILL_WAITS; by *= 2) {
        e->group->weight = was * by;
        out = why_try(c, g);
    }
    const double value[] = {was, e->group->weight};
    e->group->weight = was;
    offer_setting(list, e, "weight", value, out);
}

static void more_max_slots(struct core *c, struct group *g, json_t *list)
{
    struct exp *e = g->exp;
    int64_t was = e->group->max_slots, want = g->held + g->releasing + g->size;
    if (was < 0 || was >= want)
        return;
    e->group->max_slots = want;
    enum why_outcome out = why_try(c, g);
    e->group->max_slots = was;
    offer_setting(list, e, "max-slots", (const double[]){(double)was, (double)want}, out);
}

/* An agent that was switched off, wholly or in part. */
static void enable_agent(struct core *c, struct group *g, struct agent *a, json_t *list)
{
    enum off off = a->off;
    VEC(enum off) slots = {0};
    for (size_t i = 0; i < a->slots.n; i++) {
        vec_push(&slots, a->slots.v[i].off);
        a->slots.v[i].off = NOT_OFF;
    }
    a->off = NOT_OFF;
    fit_refresh(a);
    enum why_outcome out = why_try(c, g);
    a->off = off;
    for (size_t i = 0; i < a->slots.n; i++)
        a->slots.v[i].off = slots.v[i];
    vec_free(&slots);
    fit_refresh(a);
    if (out == WHY_STILL_WAITS)
        return;
    det_cleanup(freep) char *cmd = det_asprintf("det agent enable %s", a->id);
    add_suggestion(list, cmd, "enable agent %s, which is switched off%s: %s", a->id,
                   off ? "" : " in part", outcome_text(out));
}

static bool is_off(const struct agent *a)
{
    for (size_t i = 0; i < a->slots.n; i++)
        if (a->slots.v[i].off)
            return true;
    return a->off;
}

static void enable_agents(struct core *c, struct group *g, json_t *list)
{
    int passes = 0, most = why_passes(g, PASSES_MAX);
    for (size_t i = 0; i < g->pool->agents.n && passes < most; i++)
        if (g->pool->agents.v[i]->state == AGENT_UP && is_off(g->pool->agents.v[i])) {
            enable_agent(c, g, g->pool->agents.v[i], list);
            passes++;
        }
}

/* Pools where nobody waits, and it would fit what is free and its owner's quota: for an experiment
 * of which nothing runs, since no other can be moved (job.c). */
static void other_pool(struct core *c, struct group *g, json_t *list)
{
    struct placement p = {0};
    if (g->running.n + g->ending.n)
        return;
    g->user->taking = 0; /* by the passes that were tried */
    for (size_t i = 0; i < c->pools.n; i++) {
        const struct pool *o = c->pools.v[i];
        if (o == g->pool || o->pending_n || quota_left(c, g->user, o) < g->size ||
            !fit_place(&o->fit, g->pending.first, &p))
            continue;
        det_cleanup(freep) char *cmd =
            det_asprintf("det job update %s --resource-pool %s", g->exp->job_id, o->name);
        add_suggestion(list, cmd,
                       "move it to pool %s, where %" PRId64 " slots are free: it would start now",
                       o->name, fit_free(&o->fit));
    }
    vec_free(&p.nodes);
}

/* The youngest single allocation whose end would be enough. */
static void end_one(struct core *c, struct group *g, json_t *list)
{
    int passes = 0, most = why_passes(g, PASSES_MAX);
    for (size_t i = c->allocs.n; i-- > 0 && passes < most;) {
        struct alloc *a = c->allocs.v[i];
        if (a->pool != g->pool || a->queued_as != QUEUE_RUNNING || !a->trial || a->slots == 0)
            continue;
        passes++;
        if (try_without(c, g, a) != WHY_STARTS)
            continue;
        det_cleanup(freep) char *cmd = det_asprintf("det experiment pause %" PRId64, a->exp_id);
        add_suggestion(list, cmd,
                       "pause experiment %" PRId64 " (its trial %" PRId64 " holds %" PRId64
                       " slot%s): it would start once that has stopped",
                       a->exp_id, a->trial->id, a->slots, a->slots == 1 ? "" : "s");
        return;
    }
}

void why_suggest(struct core *c, struct group *g, json_t *suggestions)
{
    if (!g->exp || !g->pending.first || why_try(c, g) == WHY_STARTS)
        return;
    more_max_slots(c, g, suggestions);
    enable_agents(c, g, suggestions);
    if (g->pool->o.scheduler == CORE_PRIORITY)
        more_priority(c, g, suggestions);
    if (g->pool->o.scheduler == CORE_FAIR_SHARE)
        more_weight(c, g, suggestions);
    other_pool(c, g, suggestions);
    fewer_slots(c, g, suggestions);
    if (json_array_size(suggestions) < 3)
        end_one(c, g, suggestions);
}
