#include "agent.h"
#include "alloc.h"
#include "avoid.h"
#include "dispatch.h"
#include "effects.h"
#include "exp.h"
#include "park.h"
#include "pool.h"
#include "queue.h"
#include "quota.h"
#include "reconcile.h"
#include "restore.h"
#include "save.h"
#include "scheduler.h"
#include "store.h"
#include "trial.h"
#include <assert.h>
#include <string.h>

const struct core_options core_options_default = {
    .scheduler = CORE_FAIR_SHARE,
    .fitting = CORE_FIT_BEST,
    .default_priority = 42,
    .launch_error = true,
    .max_aux_containers = 100,
    .agent_reconnect_wait_ms = 25000,
    .starvation_wait_ms = 3600000,
    .preempt_timeout_ms = 3600000,
    .kill_resend_ms = 30000,
    .start_resend_ms = 60000,
    .invalid_hp_exit_ms = 10000,
    .ready_timeout_ms = 1800000,
    .gc_timeout_ms = 3600000,
    .default_pool = "default",
};

struct core *core_create(const struct core_options *o)
{
    struct core *c = det_zalloc(sizeof *c);
    c->o = *o;
    c->default_pool = det_strdup(o->default_pool ? o->default_pool : "default");
    c->o.default_pool = c->default_pool;
    c->cluster_id = det_strdup(o->cluster_id ? o->cluster_id : "");
    c->o.cluster_id = c->cluster_id;
    c->groups.bytes = sizeof(struct group);
    c->exp_by_id = imap_create();
    c->trial_by_id = imap_create();
    c->deleted = imap_create();
    c->revisions = imap_create();
    c->edits = imap_create();
    c->alloc_by_id = map_create();
    c->store_by_place = map_create();
    c->agent_by_id = map_create();
    c->settled.kind = TIMER_SETTLED;
    c->waits.kind = TIMER_WAITS;
    c->lifts.kind = TIMER_LIFTS;
    pool_get(c, c->default_pool);
    for (size_t i = 0; i < o->pools_n; i++)
        pool_get(c, o->pools[i].name);
    c->o.pools = NULL; /* the caller's; every pool has its own */
    c->o.pools_n = 0;
    quota_init(c, o->quotas, o->quotas_n);
    return c;
}

static void free_lists(struct core *c)
{
    for (size_t i = 0; i < c->search_rows.n; i++)
        free(c->search_rows.v[i].text);
    vec_free(&c->exps);
    vec_free(&c->allocs);
    vec_free(&c->agents);
    vec_free(&c->pools);
    vec_free(&c->ports);
    vec_free(&c->timers.heap);
    vec_free(&c->dirty_exps);
    vec_free(&c->dirty_trials);
    vec_free(&c->dirty_allocs);
    vec_free(&c->dirty_agents);
    vec_free(&c->dirty_stores);
    vec_free(&c->stores);
    vec_free(&c->search_rows);
}

void core_destroy(struct core *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->exps.n; i++)
        exp_destroy(c->exps.v[i]);
    for (size_t i = 0; i < c->allocs.n; i++)
        alloc_destroy(c->allocs.v[i]);
    for (size_t i = 0; i < c->agents.n; i++)
        agent_destroy(c->agents.v[i]);
    for (size_t i = 0; i < c->pools.n; i++)
        pool_destroy(c->pools.v[i]);
    for (size_t i = 0; i < c->stores.n; i++)
        store_destroy(c->stores.v[i]);
    quota_finish(c);
    imap_destroy(c->exp_by_id);
    imap_destroy(c->trial_by_id);
    imap_destroy(c->deleted);
    imap_destroy(c->revisions);
    imap_destroy(c->edits);
    map_destroy(c->alloc_by_id);
    map_destroy(c->store_by_place);
    map_destroy(c->agent_by_id);
    free_lists(c);
    free(c->default_pool);
    free(c->cluster_id);
    free(c);
}

static void begin_step(struct core *c, int64_t now_ms, int64_t now_us, struct core_effects *out)
{
    c->now_ms = now_ms > c->now_ms ? now_ms : c->now_ms;
    c->now_us = now_us;
    c->made = 0;
    c->out = out;
}

/* Of all that changed: no path needs to think of them. */
static void set_deadlines(struct core *c)
{
    for (size_t i = 0; i < c->dirty_trials.n; i++)
        if (c->dirty_trials.v[i]->alloc)
            alloc_deadlines(c, c->dirty_trials.v[i]->alloc);
    for (size_t i = 0; i < c->dirty_allocs.n; i++)
        if (c->dirty_allocs.v[i]->state != ALLOC_TERMINATED)
            alloc_deadlines(c, c->dirty_allocs.v[i]);
}

/* Until nothing changes any more. */
static void schedule_all(struct core *c)
{
    for (bool again = true; again;) {
        again = false;
        for (size_t i = 0; i < c->pools.n; i++)
            if (c->pools.v[i]->dirty) {
                sched_run(c, c->pools.v[i]);
                again = true;
            }
    }
}

/* Schedules what changed, unless more changes first, and writes the rows. */
static void finish_step(struct core *c, bool more)
{
    if (!more)
        schedule_all(c);
    set_deadlines(c);
    save_flush(c);
    c->out = NULL;
}

static void on_timer(struct core *c, struct timer *t)
{
    switch (t->kind) {
    case TIMER_ALLOC: alloc_on_timer(c, container_of(t, struct alloc, timer)); break;
    case TIMER_EXP: exp_make_more(c, container_of(t, struct exp, more)); break;
    case TIMER_LEASE: reconcile_lease(c, container_of(t, struct agent, lease)); break;
    case TIMER_POOL: pool_on_timer(c, container_of(t, struct pool, timer)); break;
    case TIMER_SETTLED: trial_on_settled(c); break;
    case TIMER_WAITS: queue_save_waits(c); break;
    case TIMER_STORE: store_on_timer(c, container_of(t, struct store, timer)); break;
    case TIMER_LIFTS: avoid_on_timer(c); break;
    }
}

static void on_timers(struct core *c)
{
    for (struct timer *t; (t = timers_first(&c->timers)) && t->at_ms <= c->now_ms;)
        on_timer(c, t);
}

/* Before what has ended is dropped. */
static void reply_about(const struct core *c, const struct core_event *ev, struct core_reply *r)
{
    const struct alloc *a = ev->alloc_id ? alloc_find(c, ev->alloc_id) : NULL;
    bool made = ev->kind == CORE_EV_EXP_CREATE || ev->kind == CORE_EV_EXP_CONTINUE;
    bool gc = ev->kind == CORE_EV_EXP_DELETE || ev->kind == CORE_EV_EXP_GC;
    r->exp_id = a ? a->exp_id : made ? r->id : gc ? ev->gc.exp_id : ev->exp_id;
    r->trial_id = a && a->trial ? a->trial->id : ev->trial_id;
    const struct trial *t = trial_find(c, r->trial_id);
    r->exp_id = t ? t->exp->id : r->exp_id;
    r->is_setting = ev->kind == CORE_EV_AGENT_SET || ev->kind == CORE_EV_STORE_ADOPT;
}

int core_step(struct core *c, const struct core_event *ev, struct core_effects *out)
{
    struct core_reply reply = {0};
    struct det_err err = {0};
    begin_step(c, ev->now_ms, ev->now_us, out);
    on_timers(c);
    int rc = dispatch_event(c, ev, &reply, &err);
    fx_reply(out, ev->request, rc, "%s", err.text);
    if (ev->request) {
        struct core_reply *r = &out->v[out->n - 1].reply;
        r->id = reply.id;
        r->slots_exceeded = reply.slots_exceeded;
        r->progress = reply.progress;
        r->data = reply.data;
        reply_about(c, ev, r);
    }
    finish_step(c, ev->more);
    return rc == DET_EINVAL ? rc : 0;
}

bool core_refused(struct core *c, struct core_effects *batch, const struct core_refusal *r,
                  int64_t now_ms, int64_t now_us)
{
    int64_t exp_id = 0, trial_id = 0;
    if (batch->v[r->row].kind == CORE_SAVE_PARKED)
        return false;
    bool owned = park_owner(&batch->v[r->row], &exp_id, &trial_id);
    if (!owned) {
        park_leave_out(batch, r->row, r->words);
        return true;
    }
    begin_step(c, now_ms, now_us, batch);
    park(c, exp_id, r->whole ? 0 : trial_id, r->words);
    finish_step(c, false);
    return true;
}

static int64_t settled_ms(const struct core *c)
{
    int64_t wait = 0;
    for (size_t i = 0; i < c->pools.n; i++)
        if (c->pools.v[i]->o.agent_reconnect_wait_ms > wait)
            wait = c->pools.v[i]->o.agent_reconnect_wait_ms;
    return c->now_ms + wait;
}

int core_restored(struct core *c, int64_t now_ms, int64_t now_us, struct core_effects *out)
{
    begin_step(c, now_ms, now_us, out);
    c->settled_ms = settled_ms(c);
    restore_finish(c);
    for (size_t i = 0; i < c->pools.n; i++)
        c->pools.v[i]->dirty = true;
    finish_step(c, false);
    return 0;
}

int64_t core_deadline_ms(const struct core *c)
{
    const struct timer *t = timers_first(&c->timers);
    return t ? t->at_ms : INT64_MAX;
}

const char *core_reply_text(const struct core_reply *r)
{
    return r->text ? r->text : det_strerror(r->code);
}
